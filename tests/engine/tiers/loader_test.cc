// Tests loads whose pages come in an order that a test chooses.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/tiers/toy_fixture.h"

namespace pagoda::engine {
namespace {

constexpr auto kAll = [](const kv::PageRead&) { return true; };
constexpr std::int64_t kPatienceNs = 50'000'000;  // longer than a task waits for a load

struct Regions {
  std::string name;
  // Salts of the request that loads, and of the one that computes the same tokens meanwhile.
  std::string salt;
  std::uint64_t public_tokens;
  std::string other_salt;
};

class LoadOfAnotherChain : public testing::TestWithParam<Regions> {};

// A load stands in one region, and its task finds the same tokens in another before a page has
// come: the task's blocks are not those that the load reserved.
TEST_P(LoadOfAnotherChain, PublishesNoPageThatNobodyWrote) {
  const Regions& regions = GetParam();
  ToyFixture fixture;
  Request loading = toy_request(18);
  loading.cache_salt = regions.salt;
  loading.public_tokens = regions.public_tokens;
  Request computing = toy_request(18);
  computing.cache_salt = regions.other_salt;
  fixture.submit(loading);
  fixture.run();
  ASSERT_GE(fixture.store.pages.size(), 4u);
  fixture.clear_pool();  // only the store has it

  const auto loads = fixture.submit(loading);
  fixture.run(1);
  ASSERT_EQ(fixture.store.reads.size(), 4u);
  const auto computes = fixture.submit(computing);
  fixture.run(8);
  fixture.pass_ns(kPatienceNs);  // nothing comes: the task goes on without
  fixture.run();
  ASSERT_TRUE(loads->ended() && computes->ended());
  EXPECT_EQ(fixture.wrong_page(), "");

  fixture.store.holds_reads = false;
  const auto again = fixture.submit(loading);
  const auto everyone = fixture.submit(toy_request(18));
  fixture.run();
  for (const auto& heard : {loads, computes, again, everyone}) {
    EXPECT_EQ(heard->answers[0].tokens, fixture.alone(loading));
  }
}

INSTANTIATE_TEST_SUITE_P(Regions, LoadOfAnotherChain,
                         testing::Values(Regions{"SaltedThenPublic", "y", 0, ""},
                                         Regions{"PublicUptoThenSalted", "y", 16, "y"},
                                         Regions{"PublicInPartThenSalted", "y", 8, "y"},
                                         Regions{"PublicInPartThenPublic", "y", 8, ""}),
                         [](const auto& tested) { return tested.param.name; });

// Blocks that came behind a failed one are none of those that the task waits for.
TEST(Loader, GoesOnWithoutABlockThatDoesNotComeWhateverCameBehindAFailedOne) {
  ToyFixture fixture;
  const Request request = toy_request(34);  // eight whole blocks
  fixture.submit(request);
  fixture.run();
  fixture.clear_pool();
  const auto heard = fixture.submit(request);
  fixture.run(1);
  ASSERT_EQ(fixture.store.reads.size(), 8u);
  const std::vector<kv::PageRead> reads = fixture.store.reads;  // ordered by block
  const auto block = [&](std::size_t i) {
    return [&, i](const kv::PageRead& read) { return read.ticket == reads[i].ticket; };
  };
  for (std::size_t i = 3; i < 8; ++i) fixture.store.end_reads(block(i));
  fixture.store.end_reads(block(1), kv::StoreFault::kDamaged);
  fixture.run(2);
  EXPECT_FALSE(heard->ended()) << "the first block is on its way";
  fixture.pass_ns(kPatienceNs);
  for (int i = 0; i < 50 && !heard->ended(); ++i) {
    fixture.run(1);
    // A read that has begun ends at any time: cancelling does not help.
  }
  EXPECT_TRUE(heard->ended()) << "computing takes less time than the store's silence";
  EXPECT_EQ(heard->answers[0].tokens, fixture.alone(request));
  fixture.store.end_reads(kAll, kv::StoreFault::kTimeout);
  fixture.run();
  EXPECT_EQ(fixture.wrong_page(), "");
}

struct Windows {
  std::string name;
  std::vector<kv::memory::AttentionSpec> groups;
};

class LoadWithWindows : public testing::TestWithParam<Windows> {};

// A load does not ask for a page of a window group that nothing behind the prompt's whole blocks
// sees.
TEST_P(LoadWithWindows, NeedsNoPageThatIsSeenNoMore) {
  ToyFixture fixture({.groups = GetParam().groups, .load = LoadMode::kAlways});
  fixture.store.holds_reads = false;
  const Request request = toy_request(35);  // eight whole blocks
  fixture.submit(request);
  fixture.run();
  std::vector<kv::BlockHash> names;
  kv::BlockHasher hasher;
  ASSERT_TRUE(kv::hash_prompt(hasher, {}, {}, 0, request.prompt, 4, names).ok());
  const auto is_seen = [&](const kv::PageKey& key) {
    const std::uint64_t window = GetParam().groups[key.group].window;
    const auto block = std::find(names.begin(), names.end(), key.hash) - names.begin();
    return window == 0 || static_cast<std::uint64_t>(block + 1) * 4 - 1 + window > 32;
  };
  std::erase_if(fixture.store.pages, [&](const auto& page) { return !is_seen(page.first); });
  const std::size_t pages = fixture.store.pages.size();
  fixture.clear_pool();
  const auto heard = fixture.submit(request);
  fixture.run();
  const LoadRecord& load = heard->answers[0].record.load;
  EXPECT_EQ(load.tokens_loaded(), 32u);
  ASSERT_EQ(load.ranges.size(), 1u);
  EXPECT_EQ(load.ranges[0].first, 0u);
  EXPECT_EQ(load.ranges[0].end, 32u);
  EXPECT_FALSE(load.ranges[0].after_start);
  EXPECT_EQ(heard->answers[0].record.prompt_tokens_cached, 32u);
  EXPECT_EQ(heard->answers[0].tokens, fixture.alone(request));
  EXPECT_EQ(fixture.wrong_page(), "");
  EXPECT_LT(pages, 8 * GetParam().groups.size());
}

INSTANTIATE_TEST_SUITE_P(Groups, LoadWithWindows,
                         testing::Values(Windows{"OneOfTwo", {{}, {.window = 5}}},
                                         Windows{"First", {{.window = 6}, {}}},
                                         Windows{"All", {{.window = 7}}},
                                         Windows{"Several", {{.window = 3}, {}, {.window = 11}}}),
                         [](const auto& tested) { return tested.param.name; });

// A match that ends with the last whole block ends there because tiers keep no part of a block.
TEST(Loader, ExplainsThatTiersKeepWholeBlocksOnly) {
  ToyFixture fixture({.load = LoadMode::kAlways});
  fixture.store.holds_reads = false;
  Request part = toy_request(35);  // eight whole blocks, two tokens, and the one always computed
  part.explain = true;
  Request whole = toy_request(33);
  whole.explain = true;
  fixture.submit(part);
  fixture.run();
  for (const Request& request : {part, whole}) {
    const bool is_part = request.prompt.size() == 35;
    const auto reason = is_part ? kv::MissReason::kWholeBlocks : kv::MissReason::kNone;
    const auto check = [&](const kv::Explanation& why) {
      EXPECT_EQ(why.stops_at(), 32u);
      EXPECT_EQ(kv::reason_name(why.reason), kv::reason_name(reason));
      EXPECT_EQ(why.tokens_reachable, request.prompt.size() - 1);
      EXPECT_FALSE(why.eviction.has_value());
    };
    fixture.clear_pool();
    Request asked = request;
    asked.explain_only = true;
    kv::BlockHasher hasher;
    ASSERT_TRUE(kv::hash_prompt(hasher, {}, {}, 0, request.prompt, 4, asked.block_hashes).ok());
    const SequenceRecord told = fixture.submit(asked)->answers[0].record;
    EXPECT_EQ(told.explanation.value().tokens_in_tier, 32u);
    check(told.explanation.value());
    const TurnEstimate turn = told.estimate.value();
    EXPECT_EQ(turn.tiers.tokens[0], 32u);
    EXPECT_EQ(turn.tokens_to_compute, request.prompt.size() - 32);
    EXPECT_LE(turn.tiers.seconds.value(), 32 / turn.tokens_per_second.value())
        << "no longer than computing them";
    const auto heard = fixture.submit(request);
    fixture.run();
    ASSERT_EQ(heard->answers[0].record.load.tokens_loaded(), 32u);
    check(heard->answers[0].record.explanation.value());
  }
  EXPECT_EQ(fixture.core().counters().misses[kv::MissReason::kWholeBlocks].requests, 1u);
}

// Explaining computes nothing, so nobody asks over a network for it.
TEST(Loader, AsksNoRemoteStoreWhatAnExplanationWouldFindThere) {
  ScriptedStore remote;
  remote.is_remote = true;
  ToyFixture fixture({.farther = {&remote}});
  const Request request = toy_request(34);
  fixture.submit(request);
  fixture.run();
  ASSERT_GT(remote.pages.size(), 0u);
  fixture.store.pages.clear();
  fixture.clear_pool();
  const std::uint64_t finds = remote.finds;
  Request asked = request;
  asked.explain = asked.explain_only = true;
  kv::BlockHasher hasher;
  ASSERT_TRUE(kv::hash_prompt(hasher, {}, {}, 0, request.prompt, 4, asked.block_hashes).ok());
  const auto told = fixture.submit(asked);
  fixture.run();
  const TurnEstimate& estimate = told->answers[0].record.estimate.value();
  EXPECT_EQ(remote.finds, finds);
  EXPECT_FALSE(estimate.tiers.answers_later[0]);
  EXPECT_TRUE(estimate.tiers.answers_later[1]);
  EXPECT_EQ(estimate.tokens_to_compute, request.prompt.size());
}

// What a running sequence computes of a prompt is queued; whoever has the same prompt computes the
// rest.
TEST(Loader, AnEstimateCountsAPromptInWorkOnce) {
  ToyFixture fixture;
  const Request request = toy_request(200);
  fixture.submit(request);
  fixture.run(1);  // the first 64 tokens
  Request asked = request;
  asked.explain = asked.explain_only = true;
  const auto told = fixture.submit(asked);
  const TurnEstimate& estimate = told->answers[0].record.estimate.value();
  EXPECT_EQ(estimate.tokens_queued, 200u - 64u);
  EXPECT_EQ(estimate.tokens_to_compute, 1u) << "the last token is computed by everybody";
  fixture.run();
}

}  // namespace
}  // namespace pagoda::engine
