// Numbers of tokens with a suffix. Values are those of vLLM's human_readable_int: k is 1000, K is
// 1024.
#include "cli/token_count.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "cli/captured_command.h"

namespace pagoda::cli {
namespace {

using testing::HasSubstr;

TEST(TokenCount, SuffixesAreThoseOfVllm) {
  const std::vector<std::pair<const char*, std::uint64_t>> all = {
      {"8192", 8192},  {"0", 0},           {"1k", 1000},       {"1K", 1024},
      {"8K", 8192},    {"25.6k", 25600},   {"0.5K", 512},      {"1m", 1000000},
      {"1M", 1048576}, {"1g", 1000000000}, {"1G", 1073741824}, {"2.5k", 2500}};
  for (const auto& [text, tokens] : all) EXPECT_EQ(parse_token_count(text), tokens) << text;
  for (const char* const text :
       {"", "k", "8kk", "8 k", "-1", "-1k", "1.5", "0.0001k", "8T", "1e3k", "99999999999G", "x"}) {
    EXPECT_EQ(parse_token_count(text), std::nullopt) << text;
  }
}

// The port shows that the number was taken; a range is kept in tokens.
TEST(TokenCount, LengthsOfServeMayHaveASuffix) {
  const std::vector<std::vector<std::string>> taken = {{"-c", "8k"},
                                                       {"--max-model-len", "8K"},
                                                       {"--max-num-batched-tokens", "2k"},
                                                       {"--max-output-tokens", "1K"}};
  for (const std::vector<std::string>& flag : taken) {
    const Captured answer = run_captured({"serve", flag[0], flag[1], "--port", "x"});
    EXPECT_THAT(answer.err, testing::StartsWith("error: --port: x is not")) << flag[0];
  }
  EXPECT_THAT(run_captured({"serve", "-c", "2G"}).err,
              HasSubstr("--max-model-len: 2147483648 is not a whole number from 0 to 1073741824"));
  EXPECT_THAT(run_captured({"serve", "-c", "8x"}).err,
              HasSubstr("--max-model-len: 8x is not a whole number from 0 to 1073741824"));
  setenv("PAGODA_MAX_MODEL_LEN", "8K", 1);
  const Captured variable = run_captured({"serve", "--port", "x"});
  unsetenv("PAGODA_MAX_MODEL_LEN");
  EXPECT_THAT(variable.err, testing::StartsWith("error: --port: x is not"));
}

}  // namespace
}  // namespace pagoda::cli
