// What a mistyped word is answered with.
#include "cli/nearest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "cli/captured_command.h"

namespace pagoda::cli {
namespace {

using testing::HasSubstr;

TEST(Nearest, DistanceCountsEditsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("port", "prot"), 1u);
  EXPECT_EQ(edit_distance("host", "hosts"), 1u);
}

TEST(Nearest, OnlyWhatIsNearIsSuggested) {
  const std::vector<std::string> known = {"--port", "--host", "--max-model-len"};
  EXPECT_EQ(nearest("--prot", known), "--port");
  EXPECT_EQ(nearest("--max-model-length", known), "--max-model-len");
  EXPECT_EQ(nearest("--max-model", known), "--max-model-len");
  EXPECT_EQ(nearest("--temperature", known), std::nullopt);
  EXPECT_EQ(nearest("--prot", {}), std::nullopt);
}

struct Wrong {
  std::vector<std::string> words;
  std::vector<const char*> told;
};

TEST(Nearest, WrongFlagsValuesAndCommandsAreAnsweredWithTheNearest) {
  const std::vector<Wrong> all = {
      {{"serve", "--max-model-le", "5"}, {"--max-model-le", "did you mean --max-model-len?"}},
      {{"serve", "--no-enable-prefix-cachin"}, {"did you mean --no-enable-prefix-caching?"}},
      {{"serve", "--prot=9"}, {"did you mean --port?"}},
      {{"serve", "--kv-cache-dtype", "fp61"}, {"--kv-cache-dtype", "did you mean fp16?"}},
      {{"serve", "-ctk", "f16", "-ctv", "f32"}, {"--kv-cache-dtype", "f16", "f32"}},
      {{"bench", "prefx"}, {"did you mean prefix?"}},
      {{"sevre"}, {"did you mean serve?"}},
      {{"serve", "--port", "65536"}, {"--port", "65536", "65535"}},
      {{"serve", "--max-num-seqs", "0"}, {"--max-num-seqs", "4096"}},
      {{"serve", "--block-size", "x"}, {"--block-size", "x"}},
      {{"run", "-p", "a", "--top_k", "4"}, {"did you mean --top-k?"}}};
  for (const Wrong& wrong : all) {
    const Captured answer = run_captured(wrong.words);
    EXPECT_EQ(answer.exit_status, 2);
    for (const char* const part : wrong.told) EXPECT_THAT(answer.err, HasSubstr(part));
  }
}

TEST(Nearest, WhatDoesNotFitTogetherIsTold) {
  const std::vector<Wrong> all = {
      {{"serve", "-np", "64", "--max-num-batched-tokens", "64"},
       {"--max-num-batched-tokens", "--max-num-seqs", "64"}},
      {{"serve", "--kv-cache-memory-bytes", "much"}, {"--kv-cache-memory-bytes", "much"}},
      {{"serve", "--context-classes", "a:b"}, {"--context-classes"}},
      {{"serve", "--host", "no.such.host.invalid"}, {"no.such.host.invalid"}}};
  for (const Wrong& wrong : all) {
    const Captured answer = run_captured(wrong.words);
    EXPECT_EQ(answer.exit_status, 1);
    for (const char* const part : wrong.told) EXPECT_THAT(answer.err, HasSubstr(part));
  }
}

}  // namespace
}  // namespace pagoda::cli
