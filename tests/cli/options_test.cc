#include "cli/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/bench_command.h"
#include "cli/flag_variables.h"

namespace pagoda::cli {
namespace {

using testing::HasSubstr;

TEST(Options, EveryFlagHasAnEnvironmentVariable) {
  EXPECT_EQ(environment_name("--kv-disk"), "PAGODA_KV_DISK");
  const CommandLine line("", "pagoda");
  int value = 0;
  line.root().add_subcommand("count", "").add_option("-x,--some-number", value, "");
  line.add_environment_variables({"count"});
  setenv("PAGODA_SOME_NUMBER", "7", 1);
  EXPECT_EQ(line.parse({"count"}).error, "");
  EXPECT_EQ(value, 7);
  EXPECT_EQ(line.parse({"count", "--some-number", "8"}).error, "");
  EXPECT_EQ(value, 8) << "the command line wins";
  unsetenv("PAGODA_SOME_NUMBER");
}

TEST(Options, TwoLetterFlagsAreRewrittenUpToADoubleDash) {
  const std::vector<const char*> argv = {"pagoda", "run", "-ctk", "bf16", "--", "-ctk"};
  EXPECT_THAT(with_long_flags(6, argv.data()),
              testing::ElementsAre("pagoda", "run", "--cache-type-k", "bf16", "--", "-ctk"));
}

TEST(CommandLine, HelpAndVersionGoToStdout) {
  const Captured version = run_captured({"--version"});
  EXPECT_EQ(version.exit_status, 0);
  EXPECT_THAT(version.out, testing::StartsWith("pagoda "));
  const Captured help = run_captured({"--help"});
  EXPECT_EQ(help.exit_status, 0);
  for (const char* const command : {"run", "size", "tokenize", "inspect"}) {
    EXPECT_THAT(help.out, HasSubstr(command));
    const Captured of_command = run_captured({command, "--help"});
    EXPECT_EQ(of_command.exit_status, 0);
    EXPECT_THAT(of_command.out, HasSubstr("Examples:"));
  }
}

TEST(CommandLine, TheWordHelpAsksForTheHelpOfACommand) {
  EXPECT_EQ(run_captured({"help"}).out, run_captured({"--help"}).out);
  EXPECT_EQ(run_captured({"help", "size"}).out, run_captured({"size", "--help"}).out);
  EXPECT_EQ(run_captured({"help", "bench", "serve"}).out,
            run_captured({"bench", "serve", "--help"}).out);
}

TEST(CommandLine, TheHelpOfServeHasHeadingsAndSpeaksOfNoParser) {
  const std::string help = run_captured({"serve", "--help"}).out;
  for (const char* const part :
       {"\nKV cache:\n", "\nScheduling:\n", "--device auto|cpu|cuda ", "--port 0..65535 ",
        "--kv-remote-ttl 1..31536000\n", "-np", "-ctk", "--kv-disk-size SIZE "}) {
    EXPECT_THAT(help, HasSubstr(part));
  }
  for (const char* const part : {"->", " ...", "UINT", "ENUM"}) {
    EXPECT_THAT(help, testing::Not(HasSubstr(part)));
  }
}

TEST(CommandLine, WrongWordsAreUsageErrors) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"fly"}, {"run"}, {"run", "-p", "x", "--wings", "2"}}) {
    const Captured wrong = run_captured(words);
    EXPECT_EQ(wrong.exit_status, 2);
    EXPECT_THAT(wrong.err, testing::StartsWith("error: "));
    const bool is_run = !words.empty() && words.front() == "run";
    EXPECT_THAT(wrong.err, HasSubstr(is_run ? "see: pagoda run --help" : "see: pagoda --help"));
    EXPECT_EQ(wrong.out, "");
  }
}

TEST(CommandLine, WithoutACommandTheHelpIsShownAndItIsNoSuccess) {
  const Captured bare = run_captured({});
  EXPECT_EQ(bare.exit_status, 2);
  EXPECT_EQ(bare.err, run_captured({"--help"}).out);
  EXPECT_EQ(bare.out, "");
}

TEST(CommandLine, AVariableThatNobodyKnowsIsNamedWithTheNearest) {
  setenv("PAGODA_MAX_MODEL_LENGTH", "100", 1);
  const std::string model = bench::story_model();
  const Captured run = run_captured({"run", model, "-p", "x", "-n", "1"});
  const Captured help = run_captured({"run", "--help"});
  unsetenv("PAGODA_MAX_MODEL_LENGTH");
  EXPECT_EQ(run.exit_status, 0);
  EXPECT_THAT(run.err, HasSubstr("warning: the environment variable PAGODA_MAX_MODEL_LENGTH is not "
                                 "known, and changes nothing (did you mean "
                                 "PAGODA_MAX_MODEL_LEN?)\n"));
  EXPECT_EQ(help.err, "");
  EXPECT_THAT(run_captured({"run", model, "-p", "x", "-n", "1"}).err,
              testing::Not(HasSubstr("variable")));
}

TEST(Options, OnlyPlainVariablesOfOursAreAskedAbout) {
  const std::vector<const char*> environment = {"PATH=/bin", "PAGODA_PORT=9", "PAGODA_KERNELS=ref",
                                                "PAGODA_FLYING=secret"};
  EXPECT_THAT(unknown_variables(environment, std::vector<std::string>{"PAGODA_PORT"}),
              testing::ElementsAre("the environment variable PAGODA_FLYING is not known, and "
                                   "changes nothing"));
}

// The variable is not that of `inspect --kernels`, and no command takes it for one.
TEST(Options, AKernelSetIsForcedForEveryCommand) {
  setenv("PAGODA_KERNELS", "ref", 1);
  const Captured listed = run_captured({"inspect", "--kernels"});
  const Captured counted = run_captured({"inspect", bench::story_model()});
  const Captured measured = run_captured(
      {"bench", "cache", bench::story_model(), "--prompt-tokens", "4", "--new-tokens", "2"});
  unsetenv("PAGODA_KERNELS");
  EXPECT_EQ(listed.exit_status, 0) << listed.err;
  EXPECT_EQ(counted.exit_status, 0) << counted.err;
  EXPECT_EQ(measured.exit_status, 0) << measured.err;
  EXPECT_THAT(measured.out, HasSubstr("kernels ref 2"));
}

}  // namespace
}  // namespace pagoda::cli
