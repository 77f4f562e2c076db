#include "process/command_words.h"

#include <gtest/gtest.h>

#include "process/program_output.h"

namespace pagoda::process {
namespace {

TEST(CommandWords, AShellReadsTheWordsOfALineAsTheyWere) {
  const std::vector<std::string> words = {"printf", "%s|",  "plain", "two words", "it's",
                                          "$HOME",  "a;b",  "",      "{x}",       "back\\slash",
                                          "`x`",    "*.cc", "\"q\""};
  const auto told = run_program({"/bin/sh", "-c", shell_line(words)}, [] { return false; });
  ASSERT_TRUE(told.ok());
  std::string expected;
  for (std::size_t i = 2; i < words.size(); ++i) expected += words[i] + "|";
  EXPECT_EQ(told.value().out, expected);
  EXPECT_EQ(shell_line({"pagoda", "eval", "model.gguf"}), "pagoda eval model.gguf");
}

TEST(CommandWords, TheOwnProgramIsTheOneThatRuns) {
  EXPECT_TRUE(own_program().ends_with("process_test")) << own_program();
}

}  // namespace
}  // namespace pagoda::process
