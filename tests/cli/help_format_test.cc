#include "cli/help_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/captured_command.h"

namespace pagoda::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t columns(const std::string& line) {
  std::size_t count = 0;
  for (const char c : line) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
  return count;
}

TEST(HelpFormat, LinesBreakBetweenWordsAndEndByTheLastColumn) {
  const std::string text = wrapped(std::string(60, 'a') + " " + std::string(40, 'b') + " c", 0, 4);
  EXPECT_EQ(text, std::string(60, 'a') + "\n    " + std::string(40, 'b') + " c");
  EXPECT_EQ(wrapped(std::string(59, 'a') + " " + std::string(40, 'b'), 0, 4),
            std::string(59, 'a') + " " + std::string(40, 'b'));
  EXPECT_EQ(wrapped(std::string(120, 'a'), 30, 30), std::string(120, 'a'));
  EXPECT_EQ(wrapped("", 0, 4), "");
}

TEST(HelpFormat, NoLineOfAnyHelpIsLongerThanTheScreenExceptExamples) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{},
                                                  {"serve"},
                                                  {"run"},
                                                  {"chat"},
                                                  {"pull"},
                                                  {"size"},
                                                  {"tokenize"},
                                                  {"template"},
                                                  {"inspect"},
                                                  {"explain"},
                                                  {"replay"},
                                                  {"verify"},
                                                  {"bench"},
                                                  {"bench", "cache"},
                                                  {"bench", "serve"},
                                                  {"bench", "agents"}}) {
    std::vector<std::string> words = command;
    words.emplace_back("--help");
    std::istringstream help(run_captured(words).out);
    std::size_t lines = 0;
    for (std::string line; std::getline(help, line); ++lines) {
      if (!line.starts_with("  pagoda ") && !line.starts_with("  PAGODA_")) {
        EXPECT_LE(columns(line), kHelpColumns) << line;
      }
    }
    EXPECT_GT(lines, 5u);
  }
}

TEST(HelpFormat, SpeaksOfFlagsAndNotOfTheParser) {
  const std::string help = run_captured({"serve", "--help"}).out;
  for (const char* const part : {"--kv-curve, --no-kv-curve ", "-m, --model TEXT", "as --model",
                                 "-c, --max-model-len 0..2^30", "--model is PAGODA_MODEL.\n"}) {
    EXPECT_THAT(help, HasSubstr(part));
  }
  for (const char* const part : {"(Env:", "{false}", "Excludes:", "TEXT TEXT", "\n\n\n"}) {
    EXPECT_THAT(help, Not(HasSubstr(part)));
  }
  const std::string model = "a GGUF file, a folder, or a name";
  EXPECT_EQ(help.find(model), help.rfind(model)) << "it is said once";
  EXPECT_THAT(run_captured({"bench", "cache", "--help"}).out,
              HasSubstr("(not with --toy, --tutorial)"));
  EXPECT_THAT(run_captured({"--help"}).out,
              testing::EndsWith("\n\nEach command has its own --help with examples: pagoda run "
                                "--help\n"));
}

}  // namespace
}  // namespace pagoda::cli
