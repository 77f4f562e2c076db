// Pages of a prompt come from a tier before its request, and go there before they are evicted.
#include <gtest/gtest.h>

#include "engine/session_prompts.h"
#include "engine/tiers/tier_fixture.h"
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

TEST(Session, ThatEndedIsLoadedFromItsTierWhenItIsResumed) {
  PrefetchFixture fixture;
  Request turn = tier_request(1);
  turn.session = "agent";
  turn.first_turn_tokens = 20;
  fixture.serve(turn);
  const std::vector<TokenId> cold = fixture.tokens;
  EXPECT_FALSE(fixture.core->close_session({}, "", "other").has_value());
  const auto blocks = fixture.core->close_session({}, "", "agent");
  ASSERT_TRUE(blocks.has_value());
  EXPECT_GE(*blocks, 6u);
  EXPECT_TRUE(fixture.run()) << "pages are written";
  fixture.backend->cache().clear();
  const SequenceRecord resumed = fixture.serve(turn);
  EXPECT_EQ(resumed.load.tokens_loaded(), 96u);
  EXPECT_EQ(fixture.tokens, cold);
}

TEST(SessionPrompts, AreBoundedInBytesAndSessions) {
  SessionPrompts prompts;
  const std::vector<TokenId> half(SessionPrompts::kBytesMax / sizeof(TokenId) / 2, TokenId(1));
  prompts.note("", "a", half);
  prompts.note("", "b", half);
  EXPECT_TRUE(prompts.find("", "a").has_value());
  prompts.note("", "c", {TokenId(1)});
  EXPECT_FALSE(prompts.find("", "a").has_value()) << "the oldest goes";
  EXPECT_FALSE(prompts.find("salt", "b").has_value()) << "of another region";
  EXPECT_LE(prompts.bytes(), SessionPrompts::kBytesMax);
  for (int i = 0; i < 5000; ++i) prompts.note("", std::to_string(i), {TokenId(1), TokenId(2)});
  EXPECT_LE(prompts.bytes(), SessionPrompts::kSessionsMax * 2 * sizeof(TokenId));
  prompts.note("", "4999", {TokenId(7)});
  EXPECT_EQ(prompts.find("", "4999")->size(), 1u) << "the last prompt counts";
}

}  // namespace
}  // namespace pagoda::engine
