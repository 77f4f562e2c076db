// Where a sequence's text ends, the sequence ends: nothing behind it is found in the tree, told as
// an event, written to a tier or counted, however much of it was drafted or launched before.
#include <gtest/gtest.h>

#include "engine/tiers/toy_fixture.h"
#include "speculate/recorded_drafter.h"

namespace pagoda::engine {
namespace {

// EndsAt ends sequence i with its token number `at[i]`, counted from 1.
class EndsAt final : public OutputWatch {
 public:
  explicit EndsAt(std::vector<std::uint32_t> at) : at_(std::move(at)), seen_(at_.size()) {}

  bool ends_with(std::uint32_t sequence, TokenId) override {
    return ++seen_[sequence] == at_[sequence];
  }

 private:
  std::vector<std::uint32_t> at_;
  std::vector<std::uint32_t> seen_;
};

constexpr std::uint32_t kOutput = 40;

// A request whose output alone has kOutput tokens.
Request long_request() {
  for (std::uint64_t tokens = 10;; ++tokens) {
    Request request = toy_request(tokens, kOutput);
    if (ToyFixture().alone(request).size() == kOutput) return request;
  }
}

speculate::RecordedDrafter drafter_of(const Request& request, const std::vector<TokenId>& output) {
  speculate::RecordedDrafter drafter({.vocabulary = 50});
  std::vector<TokenId> sequence = request.prompt;
  sequence.insert(sequence.end(), output.begin(), output.end());
  drafter.record(std::move(sequence));
  return drafter;
}

struct Ways {
  std::string name;
  bool has_drafts;
  std::uint32_t launches_ahead;
};

class TextEnd : public testing::TestWithParam<Ways> {};

TEST_P(TextEnd, NothingBehindItIsPublished) {
  const Request request = long_request();
  const std::vector<TokenId> output = ToyFixture().alone(request);
  for (const std::uint32_t end : {1u, 2u, 7u, 16u, 23u, 39u}) {
    speculate::RecordedDrafter drafter = drafter_of(request, output);
    kv::EventRing events(1000, 4);
    ToyFixture fixture({.launches_ahead = GetParam().launches_ahead,
                        .drafter = GetParam().has_drafts ? &drafter : nullptr,
                        .events = &events});
    Request watched = request;
    watched.watch = std::make_shared<EndsAt>(std::vector{end});
    const auto heard = fixture.submit(watched);
    fixture.run();
    const TestSink::Given& given = heard->answers[0];
    EXPECT_EQ(given.reason, FinishReason::kStop);
    EXPECT_EQ(given.tokens, std::vector<TokenId>(output.begin(), output.begin() + end));
    EXPECT_EQ(given.record.output_tokens, end);
    EXPECT_LE(given.record.drafts.accepted, end);
    EXPECT_EQ(fixture.core().counters().output_tokens, end);

    // The last token of a sequence is never fed.
    const std::uint64_t published = request.prompt.size() + end - 1;
    EXPECT_EQ(fixture.store.pages.size(), published / 4);
    std::uint64_t stored = 0;
    events.publish();
    events.read(1000, [&](const kv::CacheEvent& event, std::span<const TokenId>) {
      stored += event.kind == kv::CacheEventKind::kStored ? 1 : 0;
    });
    EXPECT_EQ(stored, published / 4);
    Request probe = request;
    probe.prompt.insert(probe.prompt.end(), output.begin(), output.end());
    probe.end.max_tokens = 1;
    const auto found = fixture.submit(probe);
    fixture.run();
    EXPECT_EQ(found->answers[0].record.prompt_tokens_cached, published);
    EXPECT_EQ(fixture.wrong_page(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, TextEnd,
                         testing::Values(Ways{"TokenByToken", false, 0},
                                         Ways{"ALaunchAhead", false, 1}, Ways{"Drafted", true, 0},
                                         Ways{"DraftedALaunchAhead", true, 1}),
                         [](const auto& tested) { return tested.param.name; });

TEST(TextEnd, DraftsBeforeItAreCounted) {
  const Request request = long_request();
  speculate::RecordedDrafter drafter = drafter_of(request, ToyFixture().alone(request));
  ToyFixture fixture({.drafter = &drafter});
  Request watched = request;
  watched.watch = std::make_shared<EndsAt>(std::vector{9u});
  const auto heard = fixture.submit(watched);
  fixture.run();
  // The prompt gave the first token, one draft all others.
  const DraftCounts& drafts = heard->answers[0].record.drafts;
  EXPECT_EQ(drafts.drafts, 1u);
  EXPECT_GT(drafts.tokens, 8u);
  EXPECT_EQ(drafts.accepted, 8u);
  EXPECT_EQ(fixture.core().counters().drafts.accepted, 8u);
  EXPECT_EQ(fixture.core().counters().drafts_accepted_at[7], 1u);
  EXPECT_EQ(fixture.core().counters().drafts_accepted_at[8], 0u);
}

TEST(TextEnd, OfOneSequenceLeavesTheOthersOfItsRequest) {
  Request request = long_request();
  request.sampling.n = 3;
  const std::vector<std::uint32_t> ends = {3, 1, 12};
  request.watch = std::make_shared<EndsAt>(ends);
  ToyFixture fixture;
  const auto heard = fixture.submit(request);
  fixture.run();
  std::uint64_t tokens = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const TestSink::Given& given = heard->answers[i];
    if (given.reason == FinishReason::kStop && given.tokens.back() != sim::ToyModel::kEnd) {
      EXPECT_EQ(given.tokens.size(), ends[i]);
    }
    EXPECT_LE(given.tokens.size(), ends[i]);
    tokens += given.tokens.size();
  }
  EXPECT_EQ(fixture.core().counters().output_tokens, tokens);
  EXPECT_EQ(fixture.tenants[TenantId(0)].use.output_tokens, tokens);
}

// Text that ends with the last token that is allowed has ended by itself.
TEST(TextEnd, ComesBeforeALength) {
  Request request = long_request();
  request.end.max_tokens = 5;
  request.watch = std::make_shared<EndsAt>(std::vector{5u});
  ToyFixture fixture;
  const auto heard = fixture.submit(request);
  fixture.run();
  EXPECT_EQ(heard->answers[0].reason, FinishReason::kStop);
  EXPECT_EQ(heard->answers[0].tokens.size(), 5u);
}

}  // namespace
}  // namespace pagoda::engine
