#include "tidy/word_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda::tidy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Findings words(const std::string& text, const std::string& path = "src/store/a.cc") {
  return metaphors(read_source(path, text));
}

Findings flags(const std::string& text, const std::string& path = "src/engine/a.cc") {
  return flags_below_the_command_line(read_source(path, text));
}

Findings nounless(const std::string& text, const std::string& path = "src/kv/a.h") {
  return nounless_comments(read_source(path, text));
}

MATCHER_P(OnLine, line, "") { return arg.line == line; }

TEST(WordRulesTest, MetaphorsAreFoundInNamesAndComments) {
  EXPECT_THAT(
      words("class ErrandQueue;\nint free_berths = 0;\n// The courier waits.\nvoid ring();  "
            "// on two Shelves\n"),
      ElementsAre(Finding{1, "'errand' is a metaphor: say store request"},
                  Finding{2, "'berths' is a metaphor: say staging buffer"},
                  Finding{3, "'courier' is a metaphor: say request pipeline"},
                  Finding{4, "'shelves' is a metaphor: say tier set"}));
  EXPECT_THAT(words("", "src/store/courier.cc"), ElementsAre(OnLine(1)));
  EXPECT_THAT(words("int kDesk;\n", "tests/store/a_test.cc"), ElementsAre(OnLine(1)));
}

TEST(WordRulesTest, OtherWordsPass) {
  EXPECT_THAT(words("#include \"base/bell.h\"\nint keyboard = snap(\"a courier\");\n"
                    "// trailing, twinned, shelflife\nstd::desk(1);\n"),
              IsEmpty());
  EXPECT_THAT(words("// The dialect of Jinja.\n", "src/text/jinja/template.h"), IsEmpty());
  EXPECT_THAT(words("// The dialect of a server.\n"), ElementsAre(OnLine(1)));
  EXPECT_THAT(words("int courier;\n", "bench/a.cc"), IsEmpty());
}

TEST(WordRulesTest, FlagsAreNamedInTheCommandLineAlone) {
  EXPECT_THAT(flags("f(\"--block-size: is 8\");\ng(1,\n  \"use\" \" --device cpu\");\n"
                    "h(R\"(run it with --json)\");\ni(\"no memory (--max-bytes)\");\n"),
              ElementsAre(OnLine(1), OnLine(3), OnLine(4), OnLine(5)));
  EXPECT_THAT(flags("f(\"--block-size\");\n", "src/cli/a.cc"), IsEmpty());
  EXPECT_THAT(flags("f(\"--block-size\");\n", "src/client/a.cc"), SizeIs(1));
  EXPECT_THAT(flags("f(\"--csv\");\n", "src/bench/tiers_plain.cc"), IsEmpty());
  EXPECT_THAT(flags("f(\"--block-size\");\n", "tests/cli/a.cc"), IsEmpty());
}

TEST(WordRulesTest, DashesThatBeginNoFlagPass) {
  EXPECT_THAT(flags("f(\"--\");\nf(\"a -- b\");\nf(\"---x\", '\"', \"well--known\");\n"
                    "--count;\n// --block-size of the command line\n"),
              IsEmpty());
}

TEST(WordRulesTest, CommentsThatOpenWithoutTheirNounAreFound) {
  EXPECT_THAT(nounless("// Of the last launch.\nint tokens();\n"),
              ElementsAre(Finding{1,
                                  "a comment that opens with 'Of' hides its noun: write a sentence "
                                  "with a subject and a verb"}));
  EXPECT_THAT(nounless("int a;\n  // What it cost.\n//What it gives.\n//\n//   Of rows.\n"),
              ElementsAre(OnLine(2), OnLine(3), OnLine(5)));
  EXPECT_THAT(nounless("// What left the cache, and\n// why. Is it much?\n"),
              ElementsAre(OnLine(1)));
  EXPECT_THAT(nounless("// What ended without a mark\nint a;  // is this asked?\n"),
              ElementsAre(OnLine(1)));
  EXPECT_THAT(nounless("// Reads it.\n// What is read stays.\n", "src/server/api/a.cc"),
              ElementsAre(OnLine(2)));
}

TEST(WordRulesTest, CommentsWithANounAndQuestionsPass) {
  EXPECT_THAT(nounless("// Returns what it cost.\n// Offsets, Whatever.\nint a;  // Of rows\n"
                       "auto text = R\"(\n// What is not a comment.\n)\";\n"),
              IsEmpty());
  EXPECT_THAT(
      nounless("// What share of version 1.5 would a cache\n// have had? For every size.\n"),
      IsEmpty());
  EXPECT_THAT(nounless("// Of the last launch.\n", "tests/kv/a_test.cc"), IsEmpty());
}

}  // namespace
}  // namespace pagoda::tidy
