// A session that ends goes to its tier, and comes back from there when it is resumed.
#include <gtest/gtest.h>

#include "engine/tiers/tier_fixture.h"
#include "engine/tiers/toy_fixture.h"
#include "store/host/host_store.h"

namespace pagoda::engine {
namespace {

const SessionName kAgent = {.tenant = {}, .cache_salt = "", .session = "agent"};

Request turn_of(const SessionName& name, Request request) {
  request.tenant = name.tenant;
  request.cache_salt = name.cache_salt;
  request.session = name.session;
  request.first_turn_tokens = 12;
  return request;
}

TEST(ClosedSession, IsLoadedFromItsTierWhenItIsResumed) {
  TierFixture fixture(24);
  const auto store = store::HostStore::open({.bytes_max = 512 * fixture.page_bytes(),
                                             .page_bytes = fixture.page_bytes()},
                                            kv::memory_copier())
                         .value();
  fixture.open({store.get()}, WriteMode::kUse);
  fixture.core->set_space(kv::space_id("stories"));
  const Request turn = turn_of(kAgent, tier_request(1));
  const auto serve = [&] {
    const auto heard = fixture.submit(turn);
    EXPECT_TRUE(fixture.run());
    return heard->answers[0];
  };
  const TestSink::Given cold = serve();
  const auto unknown =
      fixture.core->close_session({.tenant = {}, .cache_salt = "", .session = "x"});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  const auto blocks = fixture.core->close_session(kAgent);
  ASSERT_TRUE(blocks.ok());
  EXPECT_GE(blocks.value(), 6u);
  EXPECT_TRUE(fixture.run()) << "pages are written";
  fixture.backend->cache().clear();
  const TestSink::Given resumed = serve();
  EXPECT_EQ(resumed.record.load.tokens_loaded(), 96u);
  EXPECT_EQ(resumed.tokens, cold.tokens);
  fixture.core.reset();
}

TEST(ClosedSession, OfASaltThatIsTooLongIsAnError) {
  ToyFixture fixture;
  const auto closed = fixture.core().close_session(
      {.tenant = {}, .cache_salt = std::string(513, 'x'), .session = "agent"});
  ASSERT_FALSE(closed.ok());
  EXPECT_NE(closed.error().code, ErrorCode::kNotFound);
}

// The queue of writes is shorter than the session: no block is left out.
TEST(ClosedSession, IsWrittenAsTheQueueEmpties) {
  ToyFixture fixture({.write = WriteMode::kUse, .writes_running_max = 2, .writes_queued_max = 4});
  fixture.submit(turn_of(kAgent, toy_request(300)));
  fixture.run();
  EXPECT_TRUE(fixture.store.pages.empty()) << "there is room for all of it";
  ASSERT_TRUE(fixture.core().close_session(kAgent).ok());
  fixture.run(2000);
  EXPECT_GE(fixture.store.pages.size(), 75u);
  EXPECT_EQ(fixture.core().tiers()->writer().blocks_skipped(), 0u);
  EXPECT_FALSE(fixture.cache().sessions().has_closed());
}

// A prompt's blocks come from the tier before it starts: that is one turn, not two.
TEST(ClosedSession, ATurnThatIsLoadedIsOneTurn) {
  ToyFixture fixture({.load = LoadMode::kAlways});
  fixture.store.holds_reads = false;
  std::vector<Request> turns;
  for (std::uint32_t i = 0; i < kv::SessionTable::kBranchesMax; ++i) {
    turns.push_back(turn_of(kAgent, toy_request(18)));
    turns.back().prompt[0] = TokenId(i + 1);
    turns.back().first_turn_tokens = 18;
  }
  const auto serve = [&](const Request& request) {
    const auto heard = fixture.submit(request);
    fixture.run();
    EXPECT_TRUE(heard->ended());
    return heard->answers[0];
  };
  for (const Request& turn : turns) serve(turn);
  fixture.clear_pool();
  std::vector<TestSink::Given> answers;
  for (const Request& turn : turns) {
    answers.push_back(serve(turn));
    EXPECT_GT(answers.back().record.load.tokens_loaded(), 0u);
  }
  EXPECT_EQ(fixture.cache().sessions().nodes_superseded(), 0u);
  Request next = turns.front();
  next.prompt.push_back(answers.front().tokens.front());
  for (std::uint32_t i = 0; i < 8; ++i) next.prompt.push_back(TokenId(49 - i));
  serve(next);
  EXPECT_GT(fixture.cache().sessions().nodes_superseded(), 0u) << "the first is known";
}

TEST(SessionPrompt, IsThatOfTheLastRequestThatRan) {
  ToyFixture fixture;
  const SessionName annas = {.tenant = fixture.tenants.add("anna", {.tokens_per_minute = 50}),
                             .cache_salt = "anna's",
                             .session = "agent"};
  const auto last = [&] { return fixture.core().session_prompts().find(annas); };
  Request request = turn_of(annas, toy_request(34));
  request.public_tokens = 8;
  for (const bool explains : {true, false}) {
    Request idle = request;
    idle.explain_only = explains;
    if (!explains) idle.action = CacheAction::kPrefetch;
    fixture.submit(idle);
    fixture.store.end_reads([](const kv::PageRead&) { return true; });
    fixture.run();
    EXPECT_EQ(last(), nullptr) << "it computed nothing";
  }
  fixture.pass_ns(std::int64_t{60} * 1'000'000'000);
  fixture.submit(request);
  fixture.run();
  ASSERT_NE(last(), nullptr);
  EXPECT_EQ(last()->tokens, request.prompt);
  EXPECT_EQ(last()->public_tokens, 8u);
  EXPECT_EQ(last()->first_turn_tokens, 12u);
  const auto refused = fixture.submit(turn_of(annas, toy_request(40)));
  EXPECT_EQ(refused->answers[0].reason, FinishReason::kRefused);
  EXPECT_EQ(last()->tokens.size(), 34u) << "it was refused";

  // Its pages are found by it: what was public has other hashes than what was not.
  fixture.store.holds_reads = false;
  for (const bool knows_public : {true, false}) {
    fixture.clear_pool();
    fixture.pass_ns(std::int64_t{60} * 1'000'000'000);
    Request fetch = turn_of(annas, {});
    fetch.prompt = request.prompt;
    fetch.end = request.end;
    fetch.public_tokens = knows_public ? 8 : 0;
    fetch.action = CacheAction::kPrefetch;
    const auto heard = fixture.submit(fetch);
    fixture.run();
    EXPECT_EQ(heard->answers[0].record.load.tokens_loaded(), knows_public ? 32u : 0u);
  }
}

TEST(SessionPrompt, IsForgottenWithItsTenantAndByAReset) {
  ToyFixture fixture;
  fixture.store.holds_reads = false;
  const TenantId anna = fixture.tenants.add("anna", {});
  const TenantId bert = fixture.tenants.add("bert", {});
  const auto name_of = [](TenantId tenant) {
    return SessionName{.tenant = tenant, .cache_salt = "same", .session = "agent"};
  };
  const auto knows = [&](TenantId tenant) {
    return fixture.core().session_prompts().find(name_of(tenant)) != nullptr;
  };
  const auto serve_both = [&] {
    for (const TenantId tenant : {anna, bert}) {
      fixture.submit(turn_of(name_of(tenant), toy_request(20)));
      fixture.run();
      EXPECT_TRUE(knows(tenant));
    }
  };
  serve_both();
  fixture.core().begin_removal(kv::OwnerId(anna.value()));
  EXPECT_FALSE(knows(anna));
  EXPECT_TRUE(knows(bert));
  fixture.core().end_removal(kv::OwnerId(anna.value()));
  serve_both();
  fixture.core().reset(bert);
  EXPECT_TRUE(knows(anna));
  EXPECT_FALSE(knows(bert));
  serve_both();
  fixture.core().reset(std::nullopt);
  EXPECT_FALSE(knows(anna));
  EXPECT_FALSE(knows(bert));
  EXPECT_EQ(fixture.core().session_prompts().bytes(), 0u);
}

TEST(SessionPrompts, AreBoundedInBytesAndSessions) {
  SessionPrompts prompts;
  const auto name = [](std::uint32_t tenant, const std::string& session) {
    return SessionName{.tenant = TenantId(tenant), .cache_salt = "salt", .session = session};
  };
  const auto prompt = [](std::size_t bytes) {
    return SessionPrompt{.tokens = std::vector<TokenId>(bytes / sizeof(TokenId), TokenId(1))};
  };
  constexpr std::size_t kThird = SessionPrompts::kBytesMax / 3;
  for (const char* const session : {"a", "b", "a", "c"}) {
    prompts.note(name(0, session), prompt(kThird));
  }
  EXPECT_EQ(prompts.find(name(0, "b")), nullptr) << "the one used longest ago goes";
  EXPECT_NE(prompts.find(name(0, "a")), nullptr);
  EXPECT_NE(prompts.find(name(0, "c")), nullptr);
  SessionName other = name(0, "a");
  other.cache_salt = "other";
  EXPECT_EQ(prompts.find(other), nullptr) << "of another region";
  EXPECT_EQ(prompts.find(name(1, "a")), nullptr) << "of another tenant";
  prompts.note(name(0, "a"), prompt(16));
  EXPECT_EQ(prompts.find(name(0, "a"))->tokens.size(), 4u) << "the last prompt counts";
  for (int i = 0; i < 5000; ++i) prompts.note(name(0, std::to_string(i)), prompt(8));
  EXPECT_LE(prompts.bytes(), SessionPrompts::kSessionsMax * 1024) << "names are counted";
  EXPECT_GT(prompts.bytes(), SessionPrompts::kSessionsMax * 256);
  prompts.note(name(0, "whole"), prompt(SessionPrompts::kBytesMax));
  EXPECT_EQ(prompts.find(name(0, "whole")), nullptr);
}

TEST(SessionPrompts, OfATenantPushOutNobodyWhoHasLess) {
  SessionPrompts prompts;
  const auto note = [&](std::uint32_t tenant, int session, std::size_t tokens) {
    prompts.note({TenantId(tenant), "", std::to_string(session)},
                 {.tokens = std::vector<TokenId>(tokens, TokenId(1))});
  };
  const auto knows = [&](std::uint32_t tenant, int session) {
    return prompts.find({TenantId(tenant), "", std::to_string(session)}) != nullptr;
  };
  for (int i = 0; i < 3; ++i) note(1, i, 100'000);
  for (int i = 0; i < 50; ++i) note(2, i, 1'000'000);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(knows(1, i)) << i;
  EXPECT_TRUE(knows(2, 49));
  for (int i = 0; i < 3000; ++i) note(2, i, 4000);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(knows(1, i)) << i;
  EXPECT_LE(prompts.bytes(), SessionPrompts::kBytesMax);
}

}  // namespace
}  // namespace pagoda::engine
