// Every choice reports a seed of its own, and a request for one choice with it gives that choice.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

constexpr std::uint64_t kExactMax = (std::uint64_t{1} << 53) - 1;  // of a 64-bit float

StoryFixture& seeds_fixture() {
  static StoryFixture fixture;
  return fixture;
}

struct SeedCase {
  const char* seed;  // JSON; nullptr: none
  std::uint32_t n;
  std::size_t prompts;
};

void PrintTo(const SeedCase& asked, std::ostream* out) {
  *out << (asked.seed == nullptr ? "none" : asked.seed) << ", n " << asked.n << ", "
       << asked.prompts << " prompts";
}

class Seeds : public testing::TestWithParam<SeedCase> {
 protected:
  static Json body(Json more) {
    Json made = {{"temperature", 1.0}, {"max_tokens", 12}, {"n", GetParam().n}};
    if (GetParam().seed != nullptr) made["seed"] = Json::parse(GetParam().seed);
    made.update(more);
    return made;
  }

  static std::uint64_t exact_seed(const Json& choice) {
    EXPECT_TRUE(choice["seed"].is_number_unsigned()) << choice["seed"];
    EXPECT_LE(choice["seed"].get<std::uint64_t>(), kExactMax);
    return choice["seed"];
  }
};

const std::vector<std::string> kPrompts = {"Once upon a time", "Tom had a red car", "The dog"};

TEST_P(Seeds, RepeatEveryChoiceOfABatch) {
  const std::vector<std::string> prompts(kPrompts.begin(),
                                         kPrompts.begin() + static_cast<int>(GetParam().prompts));
  const Json all = seeds_fixture().complete(body({{"prompt", prompts}}));
  const std::uint32_t n = GetParam().n;
  ASSERT_EQ(all["choices"].size(), n * prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    std::set<std::uint64_t> seeds;
    for (std::size_t answer = 0; answer < n; ++answer) {
      const Json& choice = all["choices"][i * n + answer];
      const std::uint64_t seed = exact_seed(choice);
      seeds.insert(seed);
      const Json alone =
          seeds_fixture().complete(body({{"prompt", prompts[i]}, {"n", 1}, {"seed", seed}}));
      EXPECT_EQ(alone["choices"][0]["text"], choice["text"]);
      EXPECT_EQ(alone["choices"][0]["seed"], seed);
    }
    EXPECT_EQ(seeds.size(), n) << "choices of one prompt have seeds of their own";
  }
}

TEST_P(Seeds, RepeatEveryChoiceOfAChatsStream) {
  const Json messages = {{"messages", {{{"role", "user"}, {"content", "Tell me of Tom"}}}}};
  const char* const path = "/v1/chat/completions";
  std::vector<std::string> texts(GetParam().n);
  std::vector<std::uint64_t> seeds(GetParam().n);
  for (const Json& event : seeds_fixture().stream(path, body(messages))) {
    const Json& choice = event["choices"][0];
    const std::size_t index = choice["index"];
    texts[index] += choice["delta"].value("content", "");
    if (!choice["finish_reason"].is_null()) seeds[index] = exact_seed(choice);
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Json one = body(messages);
    one.update({{"n", 1}, {"seed", seeds[i]}});
    EXPECT_EQ(seeds_fixture().ask(path, one)["choices"][0]["message"]["content"], texts[i]);
  }
}

TEST_P(Seeds, GivenOnceMoreGiveTheSameChoices) {
  const Json asked = body({{"prompt", kPrompts[0]}});
  const Json choices = seeds_fixture().complete(asked)["choices"];
  if (GetParam().seed == nullptr) {
    EXPECT_NE(seeds_fixture().complete(asked)["choices"][0]["seed"], choices[0]["seed"])
        << "one is drawn";
    return;
  }
  EXPECT_EQ(seeds_fixture().complete(asked)["choices"], choices);
  const std::uint64_t first = choices[0]["seed"];
  const Json seed = Json::parse(GetParam().seed);
  if (seed.is_number_unsigned() && seed.get<std::uint64_t>() <= kExactMax) {
    EXPECT_EQ(first, seed.get<std::uint64_t>()) << "the first choice has the seed itself";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, Seeds,
    testing::Values(SeedCase{nullptr, 1, 1}, SeedCase{nullptr, 8, 1}, SeedCase{nullptr, 4, 3},
                    SeedCase{"0", 8, 1}, SeedCase{"5", 8, 3}, SeedCase{"-1", 8, 1},
                    SeedCase{"-1", 1, 3}, SeedCase{"-2", 2, 1}, SeedCase{"9007199254740991", 3, 1},
                    SeedCase{"9007199254740992", 3, 1}, SeedCase{"9223372036854775807", 2, 2},
                    SeedCase{"-9223372036854775808", 2, 2}));

}  // namespace
}  // namespace pagoda::server
