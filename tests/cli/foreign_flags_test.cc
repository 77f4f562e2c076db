#include "cli/foreign_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "cli/captured_command.h"

namespace pagoda::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kKnown = {"--max-model-len", "--gpu-memory-utilization"};

TEST(ForeignFlags, AreNamedByTheirProgramWithOurs) {
  EXPECT_EQ(foreign_flag_hint("--ctx-size", kKnown),
            "llama.cpp's --ctx-size is --max-model-len here");
  EXPECT_EQ(foreign_flag_hint("--context-length=8192", kKnown),
            "SGLang's --context-length is --max-model-len here");
  EXPECT_EQ(foreign_flag_hint("--kv_cache_free_gpu_memory_fraction", kKnown),
            "TensorRT-LLM's --kv_cache_free_gpu_memory_fraction is --gpu-memory-utilization here");
  EXPECT_EQ(foreign_flag_hint("--enable-chunked-prefill", kKnown),
            "vLLM's --enable-chunked-prefill: it is always on here");
}

TEST(ForeignFlags, WithoutOneOfOursAreAnsweredWithWhy) {
  for (const char* const flag :
       {"--scheduling-policy", "--schedule-policy", "--disaggregation-mode", "--spec-type",
        "--jinja", "--grammar", "--json-schema", "--embedding", "--models-dir",
        "--structured-outputs-config", "--enforce-eager", "--flash-attn", "--mlock", "--no-mmap",
        "--tp", "-sm", "-cb", "-md", "-hff"}) {
    const Captured answer = run_captured({"serve", flag, "1"});
    EXPECT_EQ(answer.exit_status, 2);
    EXPECT_EQ(answer.out, "");
    EXPECT_THAT(answer.err, HasSubstr(std::string("unknown option ") + flag + " (")) << flag;
    EXPECT_THAT(answer.err, HasSubstr(std::string("'s ") + flag + ": ")) << flag;
    EXPECT_THAT(answer.err, Not(HasSubstr("did you mean"))) << flag;
  }
  EXPECT_THAT(run_captured({"serve", "-hf", "foo/bar"}).err,
              HasSubstr("llama.cpp's -hf is --model here"));
}

// "-p -hf" has a prompt that looks like a flag, and "-- -hf" a model.
TEST(ForeignFlags, AreNotSeenInTexts) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", "-p", "-hf", "-m", "/no/such.gguf"},
        {"run", "-p", "a", "--", "-hf"}}) {
    const Captured answer = run_captured(words);
    EXPECT_EQ(answer.exit_status, 1);
    EXPECT_THAT(answer.err, HasSubstr("cannot open"));
  }
}

TEST(ForeignFlags, OfNoUseInTheCommandAreNotNamed) {
  EXPECT_EQ(foreign_flag_hint("--page-size", kKnown), std::nullopt);
  EXPECT_EQ(foreign_flag_hint("--no-such-flag", kKnown), std::nullopt);
  EXPECT_EQ(foreign_flag_hint("", kKnown), std::nullopt);
}

// Every flag of ours in the table is one of pagoda serve or pagoda run: a hint names it.
TEST(ForeignFlags, AreAnsweredWithOurs) {
  for (const char* const flag : {"--model-path",
                                 "--tokenizer-path",
                                 "--sampling-defaults",
                                 "--alias",
                                 "--num-ctx",
                                 "--parallel",
                                 "--chunked-prefill-size",
                                 "--max-queued-requests",
                                 "--max-total-tokens",
                                 "--mem-fraction-static",
                                 "--page-size",
                                 "--cache-type-k",
                                 "--disable-radix-cache",
                                 "--cache-prompt",
                                 "--radix-eviction-policy",
                                 "--kv-offloading-size",
                                 "--hicache-storage-backend",
                                 "--hicache-write-policy",
                                 "--n-gpu-layers",
                                 "-ngl",
                                 "-tb",
                                 "-cram",
                                 "-fit",
                                 "-sps",
                                 "-v",
                                 "--slot-save-path",
                                 "--admin-api-key",
                                 "--threads-batch",
                                 "--num-thread",
                                 "--api-key-file",
                                 "--ssl-cert-file",
                                 "--ssl-key-file",
                                 "--allowed-origins",
                                 "--chat-template-file",
                                 "--log-requests",
                                 "--sse-ping-interval"}) {
    const Captured answer = run_captured({"serve", flag, "1"});
    EXPECT_EQ(answer.exit_status, 2);
    EXPECT_THAT(answer.err, HasSubstr(std::string("'s ") + flag + " is --")) << flag;
  }
  EXPECT_THAT(run_captured({"run", "-p", "a", "--n-predict", "4"}).err,
              HasSubstr("llama.cpp's --n-predict is --max-tokens here"));
  EXPECT_THAT(run_captured({"serve", "--api-key-file", "sk-secret"}).err,
              Not(HasSubstr("sk-secret")));
}

}  // namespace
}  // namespace pagoda::cli
