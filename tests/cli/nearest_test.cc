// What a mistyped word is answered with.
#include "cli/nearest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
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
      {{"serve", "--kv-cache-dtype", "bf16/int9"}, {"bf16/int9 is not one of", "K/V"}},
      {{"serve", "-ctk", "bf16/int8"}, {"--cache-type-k", "bf16/int8 is not one of"}},
      {{"serve", "-ctk", "q8_1"}, {"--cache-type-k", "did you mean q8_0?"}},
      {{"serve", "--kv-cache-dtype-skip-layers", "1,all"}, {"skip-layers", "all is neither"}},
      {{"bench", "prefx"}, {"did you mean prefix?"}},
      {{"sevre"}, {"did you mean serve?"}},
      {{"serve", "--port", "65536"}, {"--port", "65536", "65535"}},
      {{"serve", "--max-num-seqs", "0"}, {"--max-num-seqs", "4096"}},
      {{"serve", "--itl-target", "60001"}, {"--itl-target: 60001", "0 to 60000"}},
      {{"serve", "--itl-target", "-1"}, {"--itl-target"}},
      {{"serve", "--block-size", "x"}, {"--block-size", "x"}},
      {{"serve", "--kv-cache-memory-bytes", "much"}, {"--kv-cache-memory-bytes", "much"}},
      {{"serve", "--device", "rocm"}, {"--device: rocm is not one of auto, cpu, cuda"}},
      {{"serve", "--device", "gpu"}, {"--device: gpu is not one of", "did you mean cuda?"}},
      {{"serve", "--device", "0"}, {"--device: 0 is not one of auto, cpu, cuda"}},
      {{"serve", "--model", "a", "--model", "b"}, {"--model: is given more than once"}},
      {{"serve", "--port"}, {"--port: its value is missing"}},
      {{"run", "-p", "a", "--top-k", "x"}, {"--top-k: x is not a number"}},
      {{"serve", "--port", "x"}, {"--port: x is not a whole number from 0 to 65535"}},
      {{"serve", "--kv-remote-ttl", "0"}, {"0 is not a number from 1 to 31536000"}},
      {{"serve", "--kv-host-size", "8"}, {"--kv-host-size: 8 is 8 bytes: did you mean 8GiB?"}},
      {{"run", "-p", "a", "--top_k", "x"}, {"--top-k: x is not a number"}},
      {{"explain", "http://127.0.0.1:1", "a question"}, {"a prompt stands behind -p"}}};
  for (const Wrong& wrong : all) {
    const Captured answer = run_captured(wrong.words);
    EXPECT_EQ(answer.exit_status, 2);
    for (const char* const part : wrong.told) EXPECT_THAT(answer.err, HasSubstr(part));
  }
}

TEST(Nearest, UnknownWordsAreNamedByTheirPlaceAndShownOnlyInTheCommands) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> all = {
      {{"frobnicate"}, "error: unknown command frobnicate\nsee: pagoda --help\n"},
      {{"bench", "xyzzy"}, "error: unknown command bench xyzzy\nsee: pagoda bench --help\n"},
      {{"bench", "latency"},
       "error: unknown command bench latency (pagoda bench depth and pagoda bench batch measure "
       "tokens per second)\nsee: pagoda bench --help\n"},
      {{"frob1"},
       "error: unknown argument 1 (it is not shown: it may be a key)\nsee: pagoda --help\n"},
      {{"abcdefghijklmnopqrstu"},
       "error: unknown argument 1 (it is not shown: it may be a key)\nsee: pagoda --help\n"},
      {{"serve", "a.gguf", "xyzzy"},
       "error: unknown argument 3 (it is not shown: it may be a key)\nsee: pagoda serve --help\n"},
      {{"serve", "a.gguf", "--port", "9", "xyzzy"},
       "error: unknown argument 5, after --port (it is not shown: it may be a key)\n"
       "see: pagoda serve --help\n"},
      {{"serve", "a.gguf", "--api-key=-Zsecret", "xyzzy"},
       "error: unknown argument 4, after --api-key (it is not shown: it may be a key)\n"
       "see: pagoda serve --help\n"},
      {{"serve", "a.gguf", "--api-key", "-Zsecret", "xyzzy"},
       "error: unknown argument 5, after --api-key (it is not shown: it may be a key)\n"
       "see: pagoda serve --help\n"},
      {{"bench", "serve", "xyzzy"},
       "error: unknown argument 3 (it is not shown: it may be a key)\n"
       "see: pagoda bench serve --help\n"}};
  for (const auto& [words, told] : all) {
    const Captured answer = run_captured(words);
    EXPECT_EQ(answer.exit_status, 2);
    EXPECT_EQ(answer.err, told);
  }
}

TEST(Nearest, CommandsOfOtherProgramsAreAnsweredWithOurs) {
  const std::vector<std::pair<const char*, const char*>> all = {
      {"list", "pagoda inspect MODEL"}, {"ps", "GET /v1/models"},
      {"show", "pagoda inspect MODEL"}, {"rm", "no model is ever deleted"},
      {"quantize", "--quantization"},   {"stop", "SIGTERM"}};
  for (const auto& [word, told] : all) {
    const Captured answer = run_captured({word});
    EXPECT_EQ(answer.exit_status, 2);
    EXPECT_THAT(answer.err, HasSubstr(std::string("unknown command ") + word + " ("));
    EXPECT_THAT(answer.err, HasSubstr(told));
  }
}

TEST(Nearest, UnknownFlagsAreShownInWholeUnlessTheyMayHoldAKey) {
  EXPECT_THAT(run_captured({"serve", "--threads-fly", "2"}).err,
              HasSubstr("unknown option --threads-fly"));
  for (const char* const flag : {"--api-keysecret", "--api-keyssecret", "--api-key-secret"}) {
    const Captured answer = run_captured({"serve", flag});
    EXPECT_EQ(answer.exit_status, 2);
    EXPECT_THAT(answer.err, HasSubstr("unknown option --api-key…"));
    EXPECT_THAT(answer.err, testing::Not(HasSubstr("secret")));
  }
  for (const char* const flag :
       {"--kv-store-keyb33f", "--api_keyb33f", "--admin-api-keyb33f", "--secretb33f", "-Zb33f"}) {
    const Captured answer = run_captured({"serve", "--api-kye", flag});
    EXPECT_EQ(answer.exit_status, 2);
    EXPECT_THAT(answer.err, testing::Not(HasSubstr("b33f"))) << flag;
  }
}

TEST(Nearest, WhatDoesNotFitTogetherIsTold) {
  const std::vector<Wrong> all = {
      {{"serve", "-np", "64", "--max-num-batched-tokens", "64"},
       {"--max-num-batched-tokens", "--max-num-seqs", "64"}},
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
