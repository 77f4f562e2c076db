#include "cli/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace pagoda::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

enum class Colour : std::uint8_t { kRed, kGreen };

struct Values {
  std::string text = "as it was";
  std::uint32_t number = 7;
  double share = 0.5;
  std::optional<std::uint64_t> seed;
  std::vector<std::uint32_t> list = {1};
  Colour colour = Colour::kRed;
  std::uint64_t bytes = 1;
  std::optional<std::uint64_t> room;
  std::string cache;
  std::uint32_t length = 0;
  bool on = true;
};

// A command with a flag of each kind.
class FlagsTest : public testing::Test {
 protected:
  FlagsTest() {
    const CommandSpec command = line_.root().add_subcommand("paint", "with a colour");
    command.add_option("--text", values_.text, "a text");
    command.add_option("-n,--number", values_.number, "a number").range(1u, 9u);
    command.add_option("--share", values_.share, "a share").range(0.0, 1.0);
    command.add_option("--seed", values_.seed, "a seed");
    command.add_option("--list", values_.list, "numbers").delimiter(',');
    command.add_choice("--colour", values_.colour,
                       {{"red", Colour::kRed}, {"green", Colour::kGreen}}, "a colour");
    command.add_byte_size("--bytes", values_.bytes, "some bytes", false);
    command.add_byte_size("--room", values_.room, "more bytes");
    command.add_option("--cache", values_.cache, "a cache").capacity();
    command.add_option("--max-len", values_.length, "a length");
    command.add_flag("--on,!--off", values_.on, "on or off");
    command.callback([this] { ++calls_; });
  }

  std::string error_of(std::vector<std::string> words) {
    words.insert(words.begin(), "paint");
    return line_.parse(std::move(words)).error;
  }

  const CommandLine line_{"", "pagoda"};
  Values values_;
  int calls_ = 0;
};

TEST_F(FlagsTest, WhatIsNotGivenStaysAsItWas) {
  EXPECT_EQ(error_of({}), "");
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(values_.text, "as it was");
  EXPECT_EQ(values_.number, 7u);
  EXPECT_FALSE(values_.seed.has_value());
  EXPECT_THAT(values_.list, ElementsAre(1u));
  EXPECT_EQ(values_.bytes, 1u);
  EXPECT_TRUE(values_.on);
}

TEST_F(FlagsTest, ValuesAreReadByTheirType) {
  EXPECT_EQ(error_of({"--text", "t", "-n", "3", "--share", "0.25", "--seed", "9", "--list", "4,5",
                      "--colour", "green", "--bytes", "2KiB", "--room", "0", "--off"}),
            "");
  EXPECT_EQ(values_.text, "t");
  EXPECT_EQ(values_.number, 3u);
  EXPECT_EQ(values_.share, 0.25);
  EXPECT_EQ(values_.seed, 9u);
  EXPECT_THAT(values_.list, ElementsAre(4u, 5u));
  EXPECT_EQ(values_.colour, Colour::kGreen);
  EXPECT_EQ(values_.bytes, 2048u);
  EXPECT_EQ(values_.room, 0u);
  EXPECT_FALSE(values_.on);
}

TEST_F(FlagsTest, WrongValuesAreErrorsThatNameTheFlag) {
  for (const auto& [flag, value] : {std::pair{"--number", "10"},
                                    {"--number", "x"},
                                    {"--share", "1.5"},
                                    {"--colour", "blue"},
                                    {"--bytes", "0"},
                                    {"--room", "much"}}) {
    EXPECT_THAT(error_of({flag, value}), HasSubstr(flag)) << value;
  }
  EXPECT_EQ(calls_, 0);
}

TEST_F(FlagsTest, ErrorsSpeakOfValuesAndNotOfTheParser) {
  EXPECT_EQ(error_of({"--number", "10"}), "--number: 10 is not a whole number from 1 to 9");
  EXPECT_EQ(error_of({"--number", "x"}), "--number: x is not a whole number from 1 to 9");
  EXPECT_EQ(error_of({"--share", "nan"}), "--share: nan is not a number from 0 to 1");
  EXPECT_EQ(error_of({"--colour", "gren"}),
            "--colour: gren is not one of red, green (did you mean green?)");
  EXPECT_EQ(error_of({"--number", "1", "--number", "2"}), "--number: is given more than once");
  EXPECT_EQ(error_of({"--number"}), "--number: its value is missing");
  EXPECT_EQ(error_of({"--seed", "x"}), "--seed: x is not a number");
}

TEST_F(FlagsTest, AnErrorOfAVariableNamesTheVariable) {
  line_.add_environment_variables({"paint"});
  setenv("PAGODA_NUMBER", "many", 1);
  const std::string error = error_of({});
  unsetenv("PAGODA_NUMBER");
  EXPECT_EQ(error, "PAGODA_NUMBER: many is not a whole number from 1 to 9");
}

TEST_F(FlagsTest, AVariableIsNotReadWhereItsFlagIsGiven) {
  line_.add_environment_variables({"paint"});
  setenv("PAGODA_NUMBER", "many", 1);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--number", "3"}, {"-n", "3"}, {"--number=3"}}) {
    EXPECT_EQ(error_of(words), "") << words.front();
    EXPECT_EQ(values_.number, 3u);
  }
  unsetenv("PAGODA_NUMBER");
}

TEST_F(FlagsTest, WordsLeadToACommandAndItsFlags) {
  const CommandLine::Place place = line_.place_of({"paint", "--number", "3"});
  EXPECT_EQ(place.command, "paint");
  EXPECT_THAT(place.possible, testing::Contains("--colour"));
  EXPECT_EQ(line_.place_of({"--number", "paint"}).command, "");
}

// Others count in GiB where we count in bytes.
TEST_F(FlagsTest, ACacheOfAFewBytesIsAForgottenUnit) {
  EXPECT_EQ(error_of({"--cache", "8"}), "--cache: 8 is 8 bytes: did you mean 8GiB?");
  EXPECT_EQ(error_of({"--cache", "1"}), "--cache: 1 is 1 byte: did you mean 1GiB?");
  EXPECT_EQ(error_of({"--cache", "8192"}), "--cache: 8192 is 8192 bytes: did you mean 8192MiB?");
  for (const char* const size : {"0", "8GiB", "1KiB", "65536", "1073741824"}) {
    EXPECT_EQ(error_of({"--cache", size}), "") << size;
  }
}

TEST_F(FlagsTest, UnderscoresAreDashesInFlagsAndStayInValues) {
  EXPECT_THAT(line_.with_dashes({"paint", "--max_len", "4", "--max_len=5", "--text", "--max_len",
                                 "--no_such", "a_b", "--", "--max_len"}),
              ElementsAre("paint", "--max-len", "4", "--max-len=5", "--text", "--max_len",
                          "--no_such", "a_b", "--", "--max_len"));
}

TEST_F(FlagsTest, WordsThatMayBeFlagsAreNobodysValues) {
  const CommandLine::Place place =
      line_.place_of({"paint", "-n", "-3", "--text=-x", "--on", "-hf", "word", "--", "-q"});
  EXPECT_THAT(place.flags, ElementsAre(1u, 3u, 4u, 5u));
}

TEST_F(FlagsTest, UnknownWordsComeWithWhatCouldHaveStoodThere) {
  const CommandLine::Outcome outcome = line_.parse({"paint", "--nmber", "3"});
  EXPECT_THAT(outcome.unknown, ElementsAre("--nmber", "3"));
  EXPECT_THAT(outcome.possible, testing::Contains("--number"));
}

TEST(Flag, KnowsWhetherItsVariableGaveIt) {
  const CommandLine line("", "pagoda");
  std::string file;
  const CommandSpec command = line.root().add_subcommand("read", "");
  const Flag flag = command.add_option("--some-file", file, "");
  const Flag loud = command.add_flag("--loud", "");
  line.add_environment_variables({"read"});
  setenv("PAGODA_SOME_FILE", "a", 1);
  EXPECT_EQ(line.parse({"read", "--loud"}).error, "");
  EXPECT_TRUE(flag.is_from_environment());
  EXPECT_TRUE(loud.is_on());
  EXPECT_EQ(line.parse({"read", "--some-file", "b", "--loud=false"}).error, "");
  EXPECT_FALSE(flag.is_from_environment());
  EXPECT_FALSE(loud.is_on());
  flag.clear();
  EXPECT_EQ(flag.count(), 0u);
  unsetenv("PAGODA_SOME_FILE");
}

}  // namespace
}  // namespace pagoda::cli
