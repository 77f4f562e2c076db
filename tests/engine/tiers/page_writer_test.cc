// Blocks are written before they are evicted.
#include <gtest/gtest.h>

#include "engine/tiers/toy_fixture.h"

namespace pagoda::engine {
namespace {

struct Chat {
  std::string name;
  std::uint64_t at_once;  // users who ask together
  std::uint32_t blocks;   // blocks of the pool
  std::vector<kv::memory::AttentionSpec> groups = {{}};
};

class Conversations : public testing::TestWithParam<Chat> {};

// Twelve users have KV of several times the pool: every whole block that was computed in one turn
// is found in the next.
TEST_P(Conversations, GoOnFromWholeBlocksOfTheTurnBefore) {
  constexpr std::uint64_t kUsers = 12;
  constexpr std::uint64_t kTurns = 4;
  constexpr std::uint64_t kAsked = 21;
  ToyFixture fixture({.groups = GetParam().groups,
                      .blocks = GetParam().blocks,
                      .write = WriteMode::kUse,
                      .load = LoadMode::kAlways});
  fixture.store.holds_reads = false;
  std::vector<Request> users(kUsers);
  std::uint64_t found = 0;
  std::uint64_t findable = 0;
  for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
    for (std::uint64_t i = 0; i < kUsers; i += GetParam().at_once) {
      std::vector<std::shared_ptr<TestSink>> heard;
      for (std::uint64_t user = i; user < i + GetParam().at_once; ++user) {
        Request& request = users[user];
        // The last token of an output is never fed.
        if (turn > 0) findable += (request.prompt.size() - 1) / 4 * 4;
        for (std::uint64_t k = 0; k < kAsked; ++k) {
          request.prompt.emplace_back(static_cast<std::uint32_t>(1 + (k * k + turn + user) % 48));
        }
        request.end.max_tokens = 9;
        heard.push_back(fixture.submit(request));
      }
      fixture.run();
      for (std::uint64_t k = 0; k < heard.size(); ++k) {
        Request& request = users[i + k];
        const TestSink::Given& given = heard[k]->answers[0];
        ASSERT_EQ(given.tokens, fixture.alone(request));
        found += given.record.prompt_tokens_cached / 4 * 4;
        request.prompt.insert(request.prompt.end(), given.tokens.begin(), given.tokens.end());
      }
    }
  }
  EXPECT_EQ(fixture.wrong_page(), "");
  EXPECT_GE(found * 100, findable * 98) << found << " of " << findable;
}

INSTANTIATE_TEST_SUITE_P(Pools, Conversations,
                         testing::Values(Chat{"OneByOne", 1, 80}, Chat{"FourAtOnce", 4, 120},
                                         Chat{"InATightPool", 4, 60}, Chat{"AllAtOnce", 12, 100},
                                         Chat{"AllInATightPool", 12, 40},
                                         Chat{"WithAWindow", 1, 160, {{}, {.window = 6}}},
                                         Chat{"TightWithAWindow", 12, 90, {{}, {.window = 6}}}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace pagoda::engine
