// Environment variables of other servers: which are read, and what the others are answered with.
#include "cli/foreign_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/captured_command.h"

namespace pagoda::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::vector<std::string> kFlagsOfServe = {"--max-model-len",
                                                "--max-num-seqs",
                                                "--kv-cache-dtype",
                                                "--cache-type-k",
                                                "--cache-type-v",
                                                "--kv-cache-memory-bytes",
                                                "--num-gpu-blocks-override",
                                                "--api-key",
                                                "--api-keys",
                                                "--host",
                                                "--device"};

ForeignVariables read_for(std::string_view command, const std::vector<const char*>& environment,
                          const std::vector<std::string>& given = {}) {
  return read_foreign_variables(command, environment, kFlagsOfServe, given);
}

struct Read {
  const char* entry;
  const char* flag;
  const char* value;
  const char* note;
  const char* above;  // a flag that stands above it
};

constexpr Read kEachRead[] = {
    {"OLLAMA_CONTEXT_LENGTH=8192", "--max-model-len", "8192",
     "OLLAMA_CONTEXT_LENGTH=8192 is read as --max-model-len 8192", "--max-model-len"},
    {"OLLAMA_NUM_PARALLEL=4", "--max-num-seqs", "4",
     "OLLAMA_NUM_PARALLEL=4 is read as --max-num-seqs 4", "--max-num-seqs"},
    {"OLLAMA_KV_CACHE_TYPE=q8_0", "--kv-cache-dtype", "q8_0",
     "OLLAMA_KV_CACHE_TYPE=q8_0 is read as --kv-cache-dtype q8_0", "--cache-type-v"},
    {"VLLM_CPU_KVCACHE_SPACE=40", "--kv-cache-memory-bytes", "40GiB",
     "VLLM_CPU_KVCACHE_SPACE=40 is read as --kv-cache-memory-bytes 40GiB",
     "--num-gpu-blocks-override"},
    {"VLLM_API_KEY=sk-b33f", "--api-key", "sk-b33f", "VLLM_API_KEY is read as --api-key",
     "--api-keys"},
};

TEST(ForeignVariables, OfTheListAreReadAndShown) {
  for (const Read& each : kEachRead) {
    const ForeignVariables found = read_for("serve", {"PATH=/bin", each.entry});
    ASSERT_EQ(found.read.size(), 1u) << each.entry;
    EXPECT_EQ(found.read[0].flag, each.flag);
    EXPECT_EQ(found.read[0].value, each.value);
    EXPECT_THAT(found.notes, ElementsAre(each.note));
    EXPECT_THAT(found.warnings, IsEmpty());
  }
}

// A key beside a file of keys would give rights to whoever has it.
TEST(ForeignVariables, StandBelowFlagsThatSayAsMuch) {
  for (const Read& each : kEachRead) {
    for (const char* const above : {each.flag, each.above}) {
      const ForeignVariables found = read_for("serve", {each.entry}, {above});
      EXPECT_THAT(found.read, IsEmpty()) << each.entry;
      EXPECT_THAT(found.notes, ElementsAre(HasSubstr(std::string(" is not read: ") + above)));
    }
  }
}

TEST(ForeignVariables, ThatAskForTheDefaultLeaveIt) {
  for (const char* const entry :
       {"OLLAMA_CONTEXT_LENGTH=0", "OLLAMA_NUM_PARALLEL=0", "VLLM_CPU_KVCACHE_SPACE=0"}) {
    const ForeignVariables found = read_for("serve", {entry});
    EXPECT_THAT(found.read, IsEmpty());
    EXPECT_THAT(found.notes, ElementsAre(HasSubstr("at its default"))) << entry;
  }
  EXPECT_THAT(read_for("serve", {"OLLAMA_KV_CACHE_TYPE="}).notes, IsEmpty());
}

TEST(ForeignVariables, AreReadWhereAModelRunsAndKeysWhereOneIsServed) {
  EXPECT_THAT(read_for("inspect", {"OLLAMA_CONTEXT_LENGTH=8192", "OLLAMA_HOST=::1"}).notes,
              IsEmpty());
  const ForeignVariables chat = read_for("chat", {"OLLAMA_CONTEXT_LENGTH=9", "VLLM_API_KEY=a"});
  ASSERT_EQ(chat.read.size(), 1u);
  EXPECT_EQ(chat.read[0].name, "OLLAMA_CONTEXT_LENGTH");
}

struct Unread {
  const char* entry;
  const char* told;
};

TEST(ForeignVariables, ThatChangeNothingAreAnsweredWithOursOrWithWhy) {
  constexpr Unread kAll[] = {
      {"OLLAMA_HOST=0.0.0.0:80",
       "the environment variable OLLAMA_HOST changes nothing here: --host and --port say where to "
       "listen"},
      {"VLLM_PORT=80", "--host and --port"},
      {"VLLM_HOST_IP=0.0.0.0", "--host and --port"},
      {"OLLAMA_ORIGINS=*", "--cors-origin"},
      {"OLLAMA_KEEP_ALIVE=-1", "there is none, because a model stays loaded"},
      {"OLLAMA_FLASH_ATTENTION=1", "there is none, because attention is always fused"},
      {"VLLM_ATTENTION_BACKEND=X", "there is none, because there is one"},
      {"VLLM_CPU_OMP_THREADS_BIND=0-3", "--threads"},
      {"LLAMA_ARG_CTX_SIZE=9", "llama.cpp's --ctx-size is --max-model-len here"},
      {"LLAMA_ARG_N_PARALLEL=9", "llama.cpp's --parallel is --max-num-seqs here"},
      {"LLAMA_ARG_N_GPU_LAYERS=9", "llama.cpp's --n-gpu-layers is --device here"},
      {"LLAMA_ARG_HOST=0.0.0.0", "LLAMA_ARG_HOST changes nothing here: --host says it"},
      {"LLAMA_ARG_CACHE_TYPE_K=f16", "--cache-type-k says it"},
      {"LLAMA_ARG_ENDPOINT_METRICS=1", "--metrics does nothing here: always on"},
      {"VLLM_NO_SUCH_THING=1",
       "VLLM_NO_SUCH_THING of the environment: there is none here, because Pagoda has no such "
       "setting"}};
  for (const Unread& each : kAll) {
    const ForeignVariables found = read_for("serve", {each.entry});
    EXPECT_THAT(found.read, IsEmpty()) << each.entry;
    EXPECT_THAT(found.warnings, ElementsAre(HasSubstr(each.told)));
    EXPECT_THAT(read_for("run", {each.entry}).warnings, IsEmpty()) << each.entry;
  }
  EXPECT_EQ(read_for("serve", {"VLLM_A=1", "OLLAMA_B=1"}).warnings.size(), 1u) << "in one line";
}

// The variable is set for the command alone.
Captured run_with(const char* name, const char* value, std::vector<std::string> words) {
  setenv(name, value, 1);
  Captured answer = run_captured(words);
  unsetenv(name);
  return answer;
}

TEST(ForeignVariables, WithWrongValuesAreNamedThemselves) {
  constexpr Unread kAll[] = {
      {"OLLAMA_CONTEXT_LENGTH=many", "error: OLLAMA_CONTEXT_LENGTH: many is not a whole number"},
      {"OLLAMA_NUM_PARALLEL=9999", "error: OLLAMA_NUM_PARALLEL: 9999 is not a whole number"},
      {"OLLAMA_KV_CACHE_TYPE=q8_1", "error: OLLAMA_KV_CACHE_TYPE: q8_1 is not one of"},
      {"VLLM_CPU_KVCACHE_SPACE=much", "error: VLLM_CPU_KVCACHE_SPACE: 'much' is not a size"},
      {"VLLM_API_KEY=", "error: VLLM_API_KEY: is empty"}};
  for (const Unread& each : kAll) {
    const std::string entry = each.entry;
    const std::size_t equals = entry.find('=');
    const Captured answer = run_with(entry.substr(0, equals).c_str(),
                                     entry.substr(equals + 1).c_str(), {"serve", "model.gguf"});
    EXPECT_EQ(answer.exit_status, 2) << each.entry;
    EXPECT_THAT(answer.err, HasSubstr(each.told));
  }
}

TEST(ForeignVariables, DoNotShowKeysAndStandBelowWhatIsTyped) {
  const Captured secret = run_with("VLLM_API_KEY", "sk-b33f", {"serve", "--port", "x"});
  EXPECT_THAT(secret.err, HasSubstr("VLLM_API_KEY is read as --api-key\n"));
  EXPECT_THAT(secret.err, Not(HasSubstr("b33f")));
  const Captured both =
      run_with("VLLM_API_KEY", "sk-b33f", {"serve", "--api-keys", "keys", "--port", "x"});
  EXPECT_THAT(both.err, HasSubstr("VLLM_API_KEY is not read: --api-keys says it\n"));
  for (const char* const typed : {"-c", "--max_model_len", "-c9"}) {
    std::vector<std::string> words = {"serve", typed};
    if (std::string(typed) != "-c9") words.emplace_back("9");
    words.insert(words.end(), {"--port", "x"});
    const Captured answer = run_with("OLLAMA_CONTEXT_LENGTH", "8192", words);
    EXPECT_THAT(answer.err, HasSubstr("OLLAMA_CONTEXT_LENGTH=8192 is not read")) << typed;
    EXPECT_THAT(answer.err, HasSubstr("error: --port: x"));
  }
  setenv("PAGODA_MAX_MODEL_LEN", "9", 1);
  const Captured ours = run_with("OLLAMA_CONTEXT_LENGTH", "8192", {"serve", "--port", "x"});
  unsetenv("PAGODA_MAX_MODEL_LEN");
  EXPECT_THAT(ours.err,
              HasSubstr("OLLAMA_CONTEXT_LENGTH=8192 is not read: PAGODA_MAX_MODEL_LEN says it"));
}

// Places of words in messages are those that were typed.
TEST(ForeignVariables, LeaveWordsAtTheirPlaces) {
  const Captured answer =
      run_with("OLLAMA_CONTEXT_LENGTH", "64", {"serve", "a.gguf", "--port", "9", "xyzzy"});
  EXPECT_THAT(answer.err, HasSubstr("unknown argument 5, after --port"));
}

}  // namespace
}  // namespace pagoda::cli
