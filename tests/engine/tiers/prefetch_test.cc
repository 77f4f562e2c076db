// Pages of a prompt come from a tier before its request, and go there before they are evicted.
#include <gtest/gtest.h>

#include "engine/tiers/tier_fixture.h"
#include "engine/tiers/toy_fixture.h"
#include "store/host/host_store.h"

namespace pagoda::engine {
namespace {

struct PrefetchFixture : TierFixture {
  PrefetchFixture() : TierFixture(24) {
    store = store::HostStore::open({.bytes_max = 512 * page_bytes(), .page_bytes = page_bytes()},
                                   kv::memory_copier())
                .value();
    open({store.get()}, WriteMode::kUse);
    core->set_space(kv::space_id("stories"));
  }
  ~PrefetchFixture() { core.reset(); }

  SequenceRecord serve(const Request& request) {
    const auto heard = submit(request);
    EXPECT_TRUE(run());
    EXPECT_TRUE(heard->ended());
    tokens = heard->answers[0].tokens;
    return heard->answers[0].record;
  }
  SequenceRecord act(Request request, CacheAction action) {
    request.action = action;
    return serve(request);
  }

  std::unique_ptr<kv::PageStore> store;
  std::vector<TokenId> tokens;  // of the last answer
};

TEST(Prefetch, BringsAPromptFromATierBeforeItsRequest) {
  PrefetchFixture fixture;
  const Request asked = tier_request(1);
  fixture.serve(asked);
  const std::vector<TokenId> cold = fixture.tokens;
  fixture.serve(asked);  // used twice: the tier gets it
  fixture.backend->cache().clear();
  const SequenceRecord came = fixture.act(asked, CacheAction::kPrefetch);
  EXPECT_EQ(came.load.tokens_loaded(), 96u) << "six whole blocks";
  EXPECT_EQ(came.prompt_tokens_cached, 96u);
  EXPECT_EQ(came.output_tokens, 0u);
  const SequenceRecord warm = fixture.serve(asked);
  EXPECT_EQ(warm.prompt_tokens_cached, 96u);
  EXPECT_EQ(warm.load.tokens_loaded(), 0u) << "it was there";
  EXPECT_EQ(fixture.tokens, cold);
  EXPECT_EQ(fixture.act(tier_request(9), CacheAction::kPrefetch).prompt_tokens_cached, 0u)
      << "of what no tier has nothing comes, and nothing is computed";
}

TEST(Demote, CopiesToTheTierWhatIsThenEvictedFirst) {
  PrefetchFixture fixture;
  const Request first = tier_request(1);
  const Request second = tier_request(2);
  fixture.serve(second);
  fixture.serve(first);
  const std::vector<TokenId> cold = fixture.tokens;
  const SequenceRecord gone = fixture.act(first, CacheAction::kDemote);
  EXPECT_GE(gone.blocks_demoted, 6u) << "the prompt's blocks, and the answer's";
  EXPECT_EQ(gone.prompt_tokens_cached, 99u) << "it is there until room is needed";
  // 24 blocks hold three prompts of seven: the one that was used last goes, for it was demoted.
  fixture.serve(tier_request(3));
  fixture.serve(tier_request(4));
  const SequenceRecord kept = fixture.serve(second);
  EXPECT_EQ(kept.prompt_tokens_cached - kept.load.tokens_loaded(), 99u) << "it never left memory";
  const SequenceRecord back = fixture.serve(first);
  EXPECT_GT(back.load.tokens_loaded(), 0u) << "the tier has what was demoted";
  EXPECT_EQ(fixture.tokens, cold);
}

constexpr auto kAll = [](const kv::PageRead&) { return true; };
constexpr std::int64_t kPatienceNs = 50'000'000;  // longer than a request waits for a load

Request prefetch_of(Request request) {
  request.action = CacheAction::kPrefetch;
  return request;
}

// A fixture whose store alone has the prompts of these requests.
std::unique_ptr<ToyFixture> fixture_with(const std::vector<Request>& requests,
                                         const ToyFixtureOptions& options = {}) {
  auto fixture = std::make_unique<ToyFixture>(options);
  for (const Request& request : requests) fixture->submit(request);
  fixture->run();
  fixture->clear_pool();
  return fixture;
}

// A request would not wait for these loads: it would compute.
TEST(Prefetch, BringsEverythingWhereComputingWouldBeFaster) {
  struct Situation {
    const char* name;
    double tokens_per_second;
    bool knows_store;  // a page has come, slowly
  };
  for (const Situation& situation :
       {Situation{"the model's speed is unknown", 0, false},
        Situation{"a silent store", 1e5, false}, Situation{"a slow store", 1e9, true}}) {
    const Request request = toy_request(34);  // eight whole blocks
    const auto fixture =
        fixture_with({request}, {.tokens_per_second = situation.tokens_per_second});
    const auto heard = fixture->submit(prefetch_of(request));
    fixture->run(2);
    ASSERT_EQ(fixture->store.reads.size(), 8u) << situation.name;
    fixture->pass_ns(kPatienceNs);
    if (situation.knows_store) {
      const kv::StoreTicket first = fixture->store.reads.front().ticket;
      fixture->store.end_reads([&](const kv::PageRead& read) { return read.ticket == first; });
    }
    fixture->run(3);
    EXPECT_EQ(fixture->store.reads.size(), situation.knows_store ? 7u : 8u) << situation.name;
    EXPECT_FALSE(heard->ended()) << situation.name;
    fixture->store.end_reads(kAll);
    fixture->run();
    ASSERT_TRUE(heard->ended()) << situation.name;
    EXPECT_EQ(heard->answers[0].record.load.tokens_loaded(), 32u) << situation.name;
    EXPECT_EQ(heard->answers[0].record.prompt_tokens_cached, 32u) << situation.name;
    EXPECT_EQ(fixture->wrong_page(), "");
  }
}

TEST(Prefetch, EndsWithWhatCameWhereAPageDoesNotCome) {
  const Request request = toy_request(34);
  const auto fixture = fixture_with({request});
  const auto heard = fixture->submit(prefetch_of(request));
  fixture->run(2);
  ASSERT_EQ(fixture->store.reads.size(), 8u);
  const kv::StoreTicket bad = fixture->store.reads[3].ticket;
  fixture->store.end_reads([&](const kv::PageRead& read) { return read.ticket == bad; },
                           kv::StoreFault::kDamaged);
  fixture->store.end_reads(kAll);
  fixture->run();
  ASSERT_TRUE(heard->ended());
  EXPECT_EQ(heard->answers[0].reason, FinishReason::kStop);
  EXPECT_EQ(heard->answers[0].record.prompt_tokens_cached, 12u);
}

TEST(Prefetch, EndsAtItsRequestsOwnTime) {
  Request request = toy_request(34);
  const auto fixture = fixture_with({request});
  request.timeout_ns = kPatienceNs;
  const auto heard = fixture->submit(prefetch_of(request));
  fixture->run(2);
  fixture->pass_ns(kPatienceNs / 2);
  fixture->run(2);
  EXPECT_FALSE(heard->ended());
  fixture->pass_ns(kPatienceNs);
  fixture->run(2);
  ASSERT_TRUE(heard->ended());
  EXPECT_EQ(heard->answers[0].reason, FinishReason::kDeadline);
  fixture->store.end_reads(kAll);
}

// Different prompts of two whole blocks.
std::vector<Request> different_requests(std::uint32_t count) {
  std::vector<Request> requests(count, toy_request(10, 1));
  for (std::uint32_t i = 0; i < count; ++i) requests[i].prompt[0] = TokenId(i + 1);
  return requests;
}

// Sixteen prompts are loaded at a time.
TEST(Prefetch, TakesNoRequestsPlace) {
  const std::vector<Request> requests = different_requests(17);
  const auto fixture = fixture_with(requests);
  std::vector<std::shared_ptr<TestSink>> prefetches;
  for (int i = 0; i < 16; ++i) prefetches.push_back(fixture->submit(prefetch_of(requests[i])));
  fixture->run(2);
  ASSERT_EQ(fixture->store.reads.size(), 32u);
  const auto heard = fixture->submit(requests[16]);
  fixture->run(2);
  EXPECT_EQ(fixture->store.reads.size(), 34u) << "the request's pages are read at once";
  fixture->store.end_reads(kAll);
  fixture->run();
  ASSERT_TRUE(heard->ended());
  EXPECT_EQ(heard->answers[0].record.load.tokens_loaded(), 8u);
  EXPECT_EQ(heard->answers[0].tokens, fixture->alone(requests[16]));
  for (const auto& prefetch : prefetches) {
    ASSERT_TRUE(prefetch->ended());
    EXPECT_EQ(prefetch->answers[0].record.prompt_tokens_cached, 8u);
  }
}

// Half of the reads are left to requests.
TEST(Prefetch, LeavesReadsToRequests) {
  Request large = toy_request(300, 1);
  Request small = toy_request(10, 1);
  small.prompt[0] = TokenId(40);
  const auto fixture = fixture_with({large, small});
  fixture->submit(prefetch_of(large));
  fixture->run(2);
  EXPECT_EQ(fixture->store.reads.size(), 32u) << "of 64";
  fixture->submit(small);
  fixture->run(2);
  EXPECT_EQ(fixture->store.reads.size(), 34u);
  fixture->store.holds_reads = false;
  fixture->store.end_reads(kAll);
  fixture->run();
}

TEST(Prefetch, OfOneTenantLeavesPlacesToOthers) {
  const Request request = toy_request(34);
  const auto fixture = fixture_with({request});
  Request annas = prefetch_of(request);
  annas.tenant = fixture->tenants.add("anna", {});
  Request berts = prefetch_of(request);
  berts.tenant = fixture->tenants.add("bert", {});
  int taken = 0;
  while (taken < 256 && !fixture->submit(annas)->ended()) ++taken;
  EXPECT_EQ(taken, 129);
  EXPECT_FALSE(fixture->submit(berts)->ended());
  fixture->store.holds_reads = false;
  fixture->run();
}

TEST(CacheActions, CountAgainstTheTokensPerMinute) {
  for (const CacheAction action : {CacheAction::kPrefetch, CacheAction::kDemote}) {
    const Request request = toy_request(34);
    const auto fixture = fixture_with({request});
    fixture->store.holds_reads = false;
    Request annas = request;
    annas.action = action;
    annas.tenant = fixture->tenants.add("anna", {.tokens_per_minute = 100});
    for (int i = 0; i < 3; ++i) {
      const auto heard = fixture->submit(annas);
      fixture->run(20);
      ASSERT_TRUE(heard->ended());
      EXPECT_EQ(heard->answers[0].reason, i < 2 ? FinishReason::kStop : FinishReason::kRefused);
    }
  }
}

// With pages from the back of the prompt a request computes less than it did not find.
TEST(Written, IsWhatWasComputedAndNotThereBefore) {
  const Request large = toy_request(300, 1);
  const auto fixture = fixture_with({large});
  const auto heard = fixture->submit(large);
  fixture->run(2);
  fixture->pass_ns(kPatienceNs);  // the task goes on without
  fixture->run(1);
  fixture->store.holds_reads = false;
  fixture->store.end_reads(kAll);
  fixture->run();
  ASSERT_TRUE(heard->ended());
  const SequenceRecord& record = heard->answers[0].record;
  EXPECT_EQ(record.prompt_tokens_cached, 0u);
  EXPECT_GT(record.load.tokens_loaded(), 0u);
  EXPECT_LT(record.prompt_tokens_computed, 300u);
  EXPECT_EQ(record.prompt_tokens_written, record.prompt_tokens_computed);
  EXPECT_EQ(heard->answers[0].tokens, fixture->alone(large));

  PrefetchFixture stories;
  Request asked = tier_request(1);
  EXPECT_EQ(stories.serve(asked).prompt_tokens_written, 100u);
  EXPECT_EQ(stories.serve(asked).prompt_tokens_written, 1u) << "the last token is computed";
  asked.sampling.prompt_logprobs = 0;
  const SequenceRecord scored = stories.serve(asked);
  EXPECT_EQ(scored.prompt_tokens_computed, 100u);
  EXPECT_EQ(scored.prompt_tokens_written, 1u) << "all that was computed again was there";
  Request forked = tier_request(2);
  forked.sampling.n = 2;
  const auto both = stories.submit(forked);
  ASSERT_TRUE(stories.run());
  for (const TestSink::Given& given : both->answers) {
    EXPECT_EQ(given.record.prompt_tokens_written, 100u);
  }
}

}  // namespace
}  // namespace pagoda::engine
