// Programs that are run to their end: their output, status and signal come back.
#include "process/program_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda::process {
namespace {

using testing::HasSubstr;

bool never() { return false; }

// The words that run a script with one argument.
std::vector<std::string> script_words(const std::string& script, const std::string& argument = "") {
  return {"/bin/sh", "-c", script, "script", argument};
}

TEST(ProgramOutput, OutputStatusAndSignalComeBack) {
  const Result<ProgramOutput> talked =
      run_program(script_words("echo out $1; echo err >&2; exit 3", "word"), never);
  ASSERT_TRUE(talked.ok());
  EXPECT_EQ(talked.value().out, "out word\n");
  EXPECT_EQ(talked.value().err, "err\n");
  EXPECT_EQ(talked.value().end(), "ended with status 3: err");

  const Result<ProgramOutput> crashed = run_program(script_words("kill -ILL $$"), never);
  ASSERT_TRUE(crashed.ok());
  EXPECT_THAT(crashed.value().end(), HasSubstr("ended by signal 4"));

  const Result<ProgramOutput> missing = run_program({"/no/such/program"}, never);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message, HasSubstr("/no/such/program"));
}

TEST(ProgramOutput, MoreThanAPipeHoldsIsReadFromBothStreams) {
  const Result<ProgramOutput> flooded =
      run_program(script_words("head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero"), never);
  ASSERT_TRUE(flooded.ok());
  EXPECT_EQ(flooded.value().out.size(), 300000u);
  EXPECT_EQ(flooded.value().err.size(), 300000u);
}

TEST(ProgramOutput, AStoppedProgramIsKilled) {
  const Result<ProgramOutput> stopped =
      run_program(script_words("exec sleep 600"), [] { return true; });
  ASSERT_FALSE(stopped.ok());
  EXPECT_THAT(stopped.error().message, HasSubstr("stopped"));
}

}  // namespace
}  // namespace pagoda::process
