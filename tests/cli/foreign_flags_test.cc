#include "cli/foreign_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
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
            "vLLM's --enable-chunked-prefill does nothing here: always on");
}

TEST(ForeignFlags, ANumberOfDraftTokensHasAFlagOfOurs) {
  const std::vector<std::string> known = {"--spec-draft-n-max"};
  EXPECT_EQ(foreign_flag_hint("--num-speculative-tokens", known),
            "vLLM's --num-speculative-tokens is --spec-draft-n-max here");
}

TEST(ForeignFlags, WithoutOneOfOursAreAnsweredWithWhy) {
  for (const char* const flag : {"--scheduling-policy",
                                 "--schedule-policy",
                                 "--server-role",
                                 "--spec-draft-n-min",
                                 "-lcs",
                                 "--lookup-cache-static",
                                 "--lookup-cache-dynamic",
                                 "--grammar",
                                 "--json-schema",
                                 "--models-dir",
                                 "--structured-outputs-config",
                                 "-sm",
                                 "-sps",
                                 "-hff",
                                 "-v",
                                 "--download-dir",
                                 "--dp",
                                 "--pooling",
                                 "-sys",
                                 "--system",
                                 "--cpu-offload-gb",
                                 "--rope-freq-base",
                                 "--root-path",
                                 "--nnodes",
                                 "--max-lora-rank",
                                 "--max-beam-width",
                                 "--extra-llm-api-options",
                                 "--mamba-cache-dtype",
                                 "--logits-processors",
                                 "--samplers",
                                 "--cpu-mask",
                                 "-cnv",
                                 "--kv-transfer-config"}) {
    const Captured answer = run_captured({"serve", flag, "2"});
    EXPECT_EQ(answer.exit_status, 2);
    EXPECT_EQ(answer.out, "");
    EXPECT_THAT(answer.err, HasSubstr(std::string("unknown option ") + flag + " (")) << flag;
    EXPECT_THAT(answer.err, HasSubstr(std::string("'s ") + flag + ": ")) << flag;
    EXPECT_THAT(answer.err, Not(HasSubstr("did you mean"))) << flag;
  }
  EXPECT_THAT(run_captured({"serve", "-hf", "foo/bar"}).err,
              HasSubstr("llama.cpp's -hf is --model here"));
  EXPECT_THAT(run_captured({"serve", "--tp", "2"}).err,
              HasSubstr("SGLang's --tp is --tensor-parallel-size here"));
}

// What begins with a flag of ours is not read as that flag and a value: -hfd is no call for help.
TEST(ForeignFlags, OfSeveralLettersAreNamedWhole) {
  for (const char* const flag : {"-hfd", "-hft", "-hfv", "-to", "-td", "-ctkd", "-cmoe", "-mg",
                                 "-cd", "-ot", "-nkvo", "-lv", "-xyz"}) {
    const Captured answer = run_captured({"serve", flag, "2"});
    EXPECT_EQ(answer.exit_status, 2) << flag;
    EXPECT_EQ(answer.out, "") << flag;
    EXPECT_THAT(answer.err, HasSubstr(std::string("unknown option ") + flag)) << flag;
  }
  EXPECT_THAT(run_captured({"serve", "-t8", "--port", "x"}).err, HasSubstr("--port: x"));
}

// One GPU is what a script for one GPU asks for; more are refused.
TEST(ForeignFlags, ThatAskForOneDeviceAreTaken) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"serve", "--pipeline-parallel-size", "1", "--port", "x"},
        {"serve", "--pipeline-parallel-size=1", "--port", "x"},
        {"serve", "-pp", "1", "--swap-space", "0", "--port", "x"}}) {
    const std::string told = run_captured(words).err;
    EXPECT_THAT(told, HasSubstr("does nothing here"));
    EXPECT_THAT(told, HasSubstr("--port: x"));
    EXPECT_THAT(told, Not(HasSubstr("unknown")));
  }
  EXPECT_THAT(run_captured({"serve", "--pipeline-parallel-size", "2"}).err,
              HasSubstr("unknown option --pipeline-parallel-size (vLLM's"));
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

TEST(ForeignFlags, SayValueAndUnitWhereTheyDiffer) {
  const auto told = [](const char* flag) { return run_captured({"serve", flag, "8"}).err; };
  EXPECT_THAT(told("--swap-space"),
              HasSubstr("is --kv-host-size here, in bytes or with a unit: 8GiB"));
  EXPECT_THAT(told("-cram"), HasSubstr("is --kv-host-size here, in bytes or with a unit: 8GiB"));
  EXPECT_THAT(told("-ngl"), HasSubstr("is --device here: all layers are on the GPU, or none"));
  EXPECT_THAT(told("--disable-log-requests"), HasSubstr("is --log-format none here"));
  EXPECT_THAT(told("-hf"), HasSubstr("is --model here: \"pagoda pull\" downloads the model first"));
  EXPECT_THAT(told("--temp"),
              HasSubstr("is --override-generation-config '{\"temperature\": 8}' here"));
  EXPECT_THAT(run_captured({"serve", "--temp=0.3"}).err,
              HasSubstr("'{\"temperature\": 0.3}' here"));
  const std::string other = run_captured({"serve", "--temp", "sk-b33f"}).err;
  EXPECT_THAT(other, HasSubstr("'{\"temperature\": N}' here"));
  EXPECT_THAT(other, Not(HasSubstr("b33f")));
}

// The knobs that a tutorial of this field names.
TEST(ForeignFlags, OfATutorialAreTakenOrNamed) {
  const auto told = [](std::vector<std::string> words) {
    words.insert(words.begin(), "serve");
    words.insert(words.end(), {"--port", "x"});
    return run_captured(words).err;
  };
  for (const std::vector<std::string>& taken : {std::vector<std::string>{"--disable_flashinfer"},
                                                {"--builder-opt-level", "3"},
                                                {"--disable-cuda-graph"},
                                                {"--backend", "pytorch"}}) {
    EXPECT_THAT(told(taken), HasSubstr(taken[0] + " does nothing here: ")) << taken[0];
    EXPECT_THAT(told(taken), HasSubstr("--port: x")) << taken[0];
    EXPECT_THAT(told(taken), Not(HasSubstr("unknown"))) << taken[0];
  }
  EXPECT_THAT(told({"--kv_cache_quantization", "int8"}),
              HasSubstr("MLC LLM's --kv_cache_quantization is --kv-cache-dtype here"));
  EXPECT_THAT(told({"--max_seq_len", "8192"}),
              HasSubstr("TensorRT-LLM's --max_seq_len is --max-model-len here"));
  EXPECT_THAT(told({"--tokens-per-block", "32"}), HasSubstr("is --block-size here"));
  EXPECT_THAT(told({"--no-enable-block-reuse"}), HasSubstr("is not possible here"));
}

// A start script that worked elsewhere goes on working; the port shows that the rest is read.
TEST(ForeignFlags, ThatChangeNothingAreTakenWithAWord) {
  const Captured answer =
      run_captured({"serve", "--jinja", "-fa", "on", "--enforce-eager", "--no-mmap", "--embedding",
                    "--max-seq-len-to-capture", "8192", "--port", "x", "-cb"});
  EXPECT_EQ(answer.exit_status, 2);
  EXPECT_THAT(
      answer.err,
      testing::StartsWith(
          "warning: llama.cpp's --jinja does nothing here: chat templates are always Jinja\n"
          "warning: llama.cpp's -fa does nothing here: "));
  for (const char* const flag :
       {"--enforce-eager", "--no-mmap", "--embedding", "--max-seq-len-to-capture", "-cb"}) {
    EXPECT_THAT(answer.err, HasSubstr(std::string("'s ") + flag + " does nothing here: "));
  }
  EXPECT_THAT(answer.err, HasSubstr("error: --port: x is not a whole number"));
  EXPECT_THAT(answer.err, Not(HasSubstr("unknown")));
}

TEST(ForeignFlags, OfADefaultAreTakenAndOfAnythingElseAreNot) {
  const std::vector<std::vector<std::string>> taken = {{"--seed", "0"},
                                                       {"--task", "generate"},
                                                       {"--load-format", "auto"},
                                                       {"--mlock"},
                                                       {"--tokenizer-mode=auto"},
                                                       {"-O3"},
                                                       {"-O", "2"},
                                                       {"--no-slots"},
                                                       {"--dp", "1"},
                                                       {"--runner", "auto"}};
  for (const std::vector<std::string>& flag : taken) {
    std::vector<std::string> words = {"serve"};
    words.insert(words.end(), flag.begin(), flag.end());
    words.insert(words.end(), {"--port", "x"});
    const std::string told = run_captured(words).err;
    const std::string name = flag[0].substr(0, flag[0].find('='));
    EXPECT_THAT(told, HasSubstr("'s " + name + " does nothing here: "));
    EXPECT_THAT(told, HasSubstr("error: --port: x is not a whole number")) << name;
  }
  for (const std::vector<std::string>& flag : std::vector<std::vector<std::string>>{
           {"--task", "classify"}, {"--load-format", "dummy"}, {"--dp", "2"}, {"-O9", "x"}}) {
    const Captured answer = run_captured({"serve", flag[0], flag[1]});
    EXPECT_EQ(answer.exit_status, 2);
    EXPECT_THAT(answer.err, HasSubstr("unknown option -")) << flag[0];
  }
  EXPECT_THAT(run_captured({"serve", "--metrics=false"}).err,
              HasSubstr("llama.cpp's --metrics=false is not possible here: always on"));
  EXPECT_FALSE(take_idle_flag("--seed", "--port", std::vector<std::string>{"--port"}))
      << "its value is missing";
}

TEST(ForeignFlags, OfOtherCommandsOfOursAreNamed) {
  const std::vector<std::pair<std::vector<std::string>, const char*>> all = {
      {{"serve", "--context", "9"}, "pagoda plan's --context is --max-model-len here"},
      {{"serve", "--requests", "9"}, "pagoda plan's --requests is --max-num-seqs here"},
      {{"serve", "--kv", "int8"}, "pagoda plan's --kv is --kv-cache-dtype here"},
      {{"serve", "--sequence-length", "9"}, "pagoda size's --sequence-length is --max-model-len"},
      {{"run", "-p", "a", "--system", "b"}, "pagoda chat's --system: a system message is part"},
      {{"chat", "-sys", "b"}, "llama.cpp's -sys is --system here"},
      {{"bench", "serve", "--base-url", "b"}, "vLLM's --base-url is --url here"},
      {{"bench", "serve", "--num-prompts", "9"}, "vLLM's --num-prompts is --requests here"},
      {{"serve", "-p", "9"}, "unknown option -p (did you mean --port?)"},
      {{"serve", "--version"}, "pagoda --version shows it"}};
  for (const auto& [words, told] : all) {
    const Captured answer = run_captured(words);
    EXPECT_EQ(answer.exit_status, 2) << told;
    EXPECT_THAT(answer.err, HasSubstr(told));
  }
}

TEST(ForeignFlags, ThatChangeNothingAreNotTakenWhereNobodyServes) {
  const Captured answer = run_captured({"inspect", "a.gguf", "--jinja"});
  EXPECT_EQ(answer.exit_status, 2);
  EXPECT_THAT(answer.err, HasSubstr("unknown option --jinja (llama.cpp's --jinja does nothing"));
}

TEST(ForeignFlags, TakeTheirValueAlone) {
  const std::vector<std::string> known = {"--port"};
  EXPECT_EQ(take_idle_flag("-fa", "off", known)->words, 2u);
  EXPECT_EQ(take_idle_flag("-fa", "model.gguf", known)->words, 1u);
  EXPECT_EQ(take_idle_flag("--flash_attn=on", "off", known)->words, 1u);
  EXPECT_EQ(take_idle_flag("--jinja", "model.gguf", known)->words, 1u);
  EXPECT_FALSE(take_idle_flag("--port", "1", known));
  EXPECT_FALSE(take_idle_flag("--jinja", "", std::vector<std::string>{"--jinja"}));
}

TEST(ForeignFlags, AreAllNamedBesideAShortOne) {
  const std::string told = run_captured({"serve", "-ngl", "99", "--swap-space", "4"}).err;
  EXPECT_THAT(told, HasSubstr("unknown option -ngl ("));
  EXPECT_THAT(told, HasSubstr("unknown option --swap-space ("));
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
                                 "--page-size",
                                 "--disable-radix-cache",
                                 "--radix-eviction-policy",
                                 "--hicache-storage-backend",
                                 "--hicache-write-policy",
                                 "--n-gpu-layers",
                                 "-ngl",
                                 "-tb",
                                 "-cram",
                                 "-fit",
                                 "--slot-save-path",
                                 "--admin-api-key",
                                 "--threads-batch",
                                 "--num-thread",
                                 "--api-key-file",
                                 "--ssl-cert-file",
                                 "--ssl-key-file",
                                 "--allowed-origins",
                                 "--chat-template-file",
                                 "--disable-log-requests",
                                 "--log-disable",
                                 "--temp",
                                 "--repeat-penalty",
                                 "--sse-ping-interval",
                                 "-n",
                                 "--n-predict"}) {
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
