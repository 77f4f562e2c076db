// pagoda run, through its command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <regex>
#include <sstream>

#include "cli/captured_command.h"
#include "test_data.h"

namespace pagoda::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Captured run_story(std::vector<std::string> more) {
  std::vector<std::string> words = {"run", "-m", test_data() + "/models/stories260K.gguf"};
  words.insert(words.end(), more.begin(), more.end());
  return run_captured(words);
}

TEST(Run, AnEmptyPromptBeginsFromBosAndTellsTheKnownStory) {
  const Captured story = run_story({"-p", "", "-n", "60"});
  EXPECT_EQ(story.exit_status, 0) << story.err;
  EXPECT_THAT(story.out, StartsWith("Once upon a time, there was a little girl named Lily. She "
                                    "loved to play outside in the park. One day, she saw a big, "
                                    "red ball."));
}

TEST(Run, TheModelMayBeAWordOfItsOwn) {
  const Captured story =
      run_captured({"run", test_data() + "/models/stories260K.gguf", "-p", "", "-n", "8"});
  EXPECT_EQ(story.exit_status, 0) << story.err;
  EXPECT_THAT(story.out, StartsWith("Once upon a time"));
}

TEST(Run, TheClosingLineHoldsTheFiguresAndGoesToStderr) {
  const Captured story = run_story({"-p", "Once upon a time", "-n", "5"});
  for (const char* const part :
       {"prompt ", " tokens, prefill ", " tok/s, TTFT ", " ms, 5 new tokens, decode ", " tok/s"}) {
    EXPECT_THAT(story.err, HasSubstr(part));
  }
  EXPECT_THAT(story.out, testing::Not(HasSubstr("tok/s")));
}

TEST(Run, ADraftModelChangesNoText) {
  const std::string models = test_data() + "/models/";
  for (const std::vector<std::string>& sampling :
       {std::vector<std::string>{}, {"--temp", "0.9", "--top-p", "0.95", "--seed", "4"}}) {
    std::vector<std::string> words = {"-p", "Once upon a time", "-n", "60"};
    words.insert(words.end(), sampling.begin(), sampling.end());
    const Captured plain = run_story(words);
    words.insert(words.end(), {"-md", models + "stories260K.gguf", "--device", "cpu"});
    const Captured drafted = run_story(words);
    EXPECT_EQ(drafted.exit_status, 0) << drafted.err;
    EXPECT_EQ(drafted.out, plain.out);
    EXPECT_THAT(drafted.err, testing::ContainsRegex(", [0-9]+ of [0-9]+ draft tokens accepted"));
    EXPECT_THAT(plain.err, testing::Not(HasSubstr("draft")));
  }
  const Captured typed = run_story({"-p", "x", "-n", "8", "--spec-type", "draft-simple", "-md",
                                    models + "stories260K.gguf", "--device", "cpu"});
  EXPECT_EQ(typed.exit_status, 0) << typed.err;
  EXPECT_EQ(typed.out, run_story({"-p", "x", "-n", "8"}).out);
  const Captured unnamed = run_story({"-p", "x", "-n", "1", "--spec-type", "draft-simple"});
  EXPECT_NE(unnamed.exit_status, 0);
  EXPECT_THAT(unnamed.err, HasSubstr("draft model: none is named: --model-draft names one"));
  const Captured other =
      run_story({"-p", "x", "-n", "1", "-md", models + "scripted_calls.gguf", "--device", "cpu"});
  EXPECT_NE(other.exit_status, 0);
  EXPECT_THAT(other.err, HasSubstr("draft model: "));
  EXPECT_THAT(other.err, HasSubstr("it must have the same ones"));
}

// The model drafts for itself and takes the likeliest token: every draft is right, but where the
// output ends in the middle of one.
TEST(Run, TheClosingLineCountsDrafts) {
  const std::string story = test_data() + "/models/stories260K.gguf";
  const Captured drafted =
      run_story({"-p", "x", "-n", "33", "-md", story, "--draft-max", "4", "--device", "cpu"});
  std::smatch counts;
  ASSERT_TRUE(std::regex_search(drafted.err, counts,
                                std::regex(", ([0-9]+) of ([0-9]+) draft tokens accepted")))
      << drafted.err;
  EXPECT_GT(std::stoi(counts[1]), 0);
  EXPECT_LE(std::stoi(counts[2]) - std::stoi(counts[1]), 4);
  const Captured none = run_story({"-p", "x", "-n", "1", "--speculative-config", "suffix"});
  EXPECT_THAT(none.err, HasSubstr(", nothing drafted"));
}

TEST(Run, ANumberOfDraftTokensAloneIsWarnedAbout) {
  const std::string story = test_data() + "/models/stories260K.gguf";
  const char* const warning = "nothing drafts: --model-draft names a model";
  EXPECT_THAT(run_story({"-p", "x", "-n", "1", "--draft-max", "8"}).err, HasSubstr(warning));
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--spec-type", "ngram-simple"}, {"-md", story}}) {
    std::vector<std::string> words = {"-p", "x", "-n", "1", "--draft-max", "8", "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    const Captured drafting = run_story(words);
    EXPECT_EQ(drafting.exit_status, 0) << drafting.err;
    EXPECT_THAT(drafting.err, testing::Not(HasSubstr(warning)));
  }
}

// As in llama.cpp.
TEST(Run, ZeroIsTheModelsContextAndNoDrafts) {
  const std::string story = test_data() + "/models/stories260K.gguf";
  const Captured plain = run_story({"-p", "x", "-n", "8"});
  EXPECT_EQ(run_story({"-p", "x", "-n", "8", "-c", "0"}).out, plain.out);
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{"--draft-max", "0", "-md", story},
        {"-md", "/no/such.gguf", "--draft-max", "0"}}) {
    std::vector<std::string> words = {"-p", "x", "-n", "8"};
    words.insert(words.end(), order.begin(), order.end());
    const Captured off = run_story(words);
    EXPECT_EQ(off.exit_status, 0) << off.err;
    EXPECT_EQ(off.out, plain.out);
    EXPECT_THAT(off.err, testing::Not(HasSubstr("draft")));
  }
}

// vLLM's documents write fields of JSON as flags of their own.
TEST(Run, TakesFieldsOfAFlagByDots) {
  const std::vector<std::string> prompt = {"-p", "x x x x x x x", "-n", "8"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = prompt;
    words.insert(words.end(), more.begin(), more.end());
    return run_story(words);
  };
  const Captured plain = with({});
  const Captured dotted =
      with({"--speculative-config.method", "ngram", "--speculative_config.prompt_lookup_max=3",
            "--speculative-config.num_speculative_tokens", "4"});
  EXPECT_EQ(dotted.exit_status, 0) << dotted.err;
  EXPECT_EQ(dotted.out, plain.out);
  EXPECT_THAT(dotted.err, HasSubstr("draft"));
  const Captured wrong = with({"--speculative-config.method", "medusa"});
  EXPECT_EQ(wrong.exit_status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("method medusa is not supported here"));
}

TEST(Run, WithoutTheKvCacheTheTextIsTheSame) {
  for (const std::vector<std::string>& sampling :
       {std::vector<std::string>{}, {"--temp", "0.9", "--top-p", "0.95", "--seed", "4"}}) {
    std::vector<std::string> words = {"-p", "Once upon a time", "-n", "40"};
    words.insert(words.end(), sampling.begin(), sampling.end());
    const Captured cached = run_story(words);
    words.push_back("--no-kv-cache");
    const Captured naive = run_story(words);
    EXPECT_EQ(naive.out, cached.out);
    EXPECT_THAT(naive.err, HasSubstr("no KV cache"));
  }
}

TEST(Run, FlagsThatOnlyChangeTheWayDoNotChangeTheText) {
  const std::vector<std::string> words = {"-p", "Tom had a red car", "-n", "40"};
  const Captured expected = run_story(words);
  for (const std::vector<std::string>& more : {std::vector<std::string>{"-t", "1"},
                                               {"-t", "2"},
                                               {"--block-size", "3"},
                                               {"--max-num-batched-tokens", "2"}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    EXPECT_EQ(run_story(all).out, expected.out) << more.front();
  }
}

TEST(Run, AKvPolicyBoundsWhatIsSeenAndMayPassTheContext) {
  const std::vector<std::string> words = {"-p", "Once upon a time", "-n", "60", "--ignore-eos"};
  const auto under = [&](const std::string& policy, std::vector<std::string> more = {}) {
    more.insert(more.begin(), words.begin(), words.end());
    more.insert(more.end(), {"--kv-policy", policy});
    return run_story(more);
  };
  const Captured full = run_story(words);
  EXPECT_EQ(under("full").out, full.out);
  EXPECT_EQ(under("streaming:4+200").out, full.out) << "everything is in sight";
  EXPECT_NE(under("window:8").out, full.out);
  const Captured beyond = run_story(
      {"-p", "Once", "-n", "100", "--ignore-eos", "-c", "64", "--kv-policy", "streaming:4+40"});
  EXPECT_THAT(beyond.err, HasSubstr("100 new tokens"));
  const Captured without_cache = under("window:8", {"--no-kv-cache"});
  EXPECT_EQ(without_cache.exit_status, 1);
  EXPECT_THAT(without_cache.err, HasSubstr("--kv-policy: bounds a cache"));
}

TEST(Run, ASeedRepeatsAndAnUnsetOneIsReported) {
  const std::vector<std::string> words = {"-p", "One day", "-n", "20", "--temp", "1"};
  std::vector<std::string> seeded = words;
  seeded.insert(seeded.end(), {"--seed", "11"});
  EXPECT_EQ(run_story(seeded).out, run_story(seeded).out);
  const Captured unseeded = run_story(words);
  const std::size_t at = unseeded.err.find("seed ");
  ASSERT_NE(at, std::string::npos);
  const std::size_t end = unseeded.err.find('\n', at);
  std::vector<std::string> again = words;
  again.insert(again.end(), {"--seed", unseeded.err.substr(at + 5, end - at - 5)});
  EXPECT_EQ(run_story(again).out, unseeded.out) << "the reported seed gives the same answer";
}

TEST(Run, OneTokenIsCountedAsOne) {
  EXPECT_THAT(run_story({"-p", "", "-n", "1"}).err,
              testing::AllOf(HasSubstr("prompt 1 token, "), HasSubstr(", 1 new token, ")));
}

TEST(Run, TooLongAPromptIsAnErrorWithBothNumbers) {
  std::string prompt;
  for (int i = 0; i < 600; ++i) prompt += "cat ";
  const Captured refused = run_story({"-p", prompt});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.err, testing::ContainsRegex("prompt has [0-9]+ tokens"));
  EXPECT_THAT(refused.err, HasSubstr("512"));
  EXPECT_EQ(refused.out, "");
}

TEST(Run, AFullContextEndsTheAnswerAndSaysSo) {
  const Captured full = run_story({"-p", "", "-c", "16", "-n", "100"});
  EXPECT_EQ(full.exit_status, 0);
  EXPECT_THAT(full.err, HasSubstr("15 new tokens"));
  EXPECT_THAT(full.err, HasSubstr("the context of 16 tokens is full"));
}

TEST(Run, BadValuesAreNamedAndNothingRuns) {
  EXPECT_EQ(run_story({"-p", "x", "-n", "0"}).exit_status, 2);
  EXPECT_EQ(run_story({"-p", "x", "--kv-cache-dtype", "fp1"}).exit_status, 2);
  for (const auto& [flag, value] :
       {std::pair{"--temp", "-1"}, {"--temp", "500"}, {"--top-p", "2"}, {"--min-p", "-0.5"}}) {
    const Captured outside = run_story({"-p", "x", flag, value});
    EXPECT_EQ(outside.exit_status, 2);
    EXPECT_THAT(outside.err, HasSubstr(std::string(flag) + ": " + value + " is not a number from"));
  }
  const Captured missing = run_captured({"run", "-m", "/no/such/model.gguf", "-p", "x"});
  EXPECT_EQ(missing.exit_status, 1);
  EXPECT_THAT(missing.err, HasSubstr("/no/such/model.gguf"));
  EXPECT_THAT(missing.err, testing::Not(HasSubstr("Hugging Face")));
}

TEST(Run, APromptInTheModelsPlaceIsAskedAbout) {
  const Captured story = run_captured({"run", "Once upon a time"});
  EXPECT_EQ(story.exit_status, 2);
  EXPECT_THAT(story.err,
              StartsWith("error: --prompt is required, and Once upon a time is no model: "
                         "was -p 'Once upon a time' meant?\n"));
  EXPECT_THAT(run_story({}).err, StartsWith("error: --prompt is required\n"));
}

TEST(Run, ThePromptMayBeAFileOrStdin) {
  const Captured expected = run_story({"-p", "Tom had", "-n", "12"});
  const std::string file = testing::TempDir() + "run_prompt.txt";
  std::ofstream(file) << "Tom had\n";
  EXPECT_EQ(run_story({"-f", file, "-n", "12"}).out, expected.out);
  for (const char* const flag : {"-p", "--file"}) {
    std::istringstream typed("Tom had\n");
    std::streambuf* const before = std::cin.rdbuf(typed.rdbuf());
    const Captured read = run_story({flag, "-", "-n", "12"});
    std::cin.rdbuf(before);
    EXPECT_EQ(read.out, expected.out) << flag;
  }
  EXPECT_THAT(run_story({"-f", file, "-p", "x"}).err,
              HasSubstr("--prompt and --file are both given"));
  EXPECT_THAT(run_story({"-f", "/no/such.txt"}).err, HasSubstr("/no/such.txt"));
  std::remove(file.c_str());
}

// The story of an empty prompt says "She" and "the" again and again.
TEST(Run, ARepetitionPenaltyChangesTheText) {
  const std::vector<std::string> words = {"-p", "", "-n", "60"};
  std::vector<std::string> penalised = words;
  penalised.insert(penalised.end(), {"--repeat-penalty", "1.5"});
  std::vector<std::string> neutral = words;
  neutral.insert(neutral.end(), {"--repetition-penalty", "1"});
  const Captured expected = run_story(words);
  EXPECT_EQ(run_story(neutral).out, expected.out);
  EXPECT_NE(run_story(penalised).out, expected.out);
}

TEST(Run, AMissingModelIsAnsweredWithWhereModelsComeFrom) {
  const Captured named = run_captured({"run", "-m", "meta-llama/Llama-3-8B", "-p", "x"});
  EXPECT_EQ(named.exit_status, 1);
  EXPECT_THAT(named.err, HasSubstr("meta-llama/Llama-3-8B: no such file"));
  EXPECT_THAT(named.err, HasSubstr("models--meta-llama--Llama-3-8B"));
  EXPECT_THAT(named.err, HasSubstr("pagoda pull meta-llama/Llama-3-8B"));
  const char* const folder = std::getenv("XDG_CACHE_HOME");
  const std::optional<std::string> before =
      folder == nullptr ? std::nullopt : std::optional<std::string>(folder);
  setenv("XDG_CACHE_HOME", "/no/such/folder", 1);
  const Captured unnamed = run_captured({"run", "-p", "x"});
  before ? setenv("XDG_CACHE_HOME", before->c_str(), 1) : unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(unnamed.exit_status, 1);
  EXPECT_THAT(unnamed.err, HasSubstr("\"pagoda pull smollm2\" downloads the default model (93 MB), "
                                     "or name a model with --model"));
}

}  // namespace
}  // namespace pagoda::cli
