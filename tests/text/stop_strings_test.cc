#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "counted_allocations.h"
#include "text/random_text.h"
#include "text/utf8.h"

namespace pagoda::text {
namespace {

StopStrings make(std::vector<std::string> strings, bool include = false) {
  auto made = StopStrings::make(std::move(strings), {.include_stop_str_in_output = include});
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

// Follows the definition on the whole text: the smallest end, then the smallest begin.
std::optional<StopStrings::Match> find_naively(const std::string& text,
                                               const std::vector<std::string>& strings) {
  std::optional<StopStrings::Match> best;
  for (std::size_t i = 0; i < strings.size(); ++i) {
    const std::size_t begin = text.find(strings[i]);
    if (begin == std::string::npos) continue;
    const StopStrings::Match match{i, begin, begin + strings[i].size()};
    const bool better =
        !best || match.end < best->end || (match.end == best->end && match.begin < best->begin);
    if (better) best = match;
  }
  return best;
}

TEST(StopStrings, TextBeforeAStopIsSentAndNothingOfItOrAfter) {
  StopStrings stops = make({"END"});
  EXPECT_EQ(stops.push("abcE"), "abc");
  EXPECT_EQ(stops.push("N"), "");
  EXPECT_EQ(stops.push("xE"), "ENx");
  EXPECT_EQ(stops.push("NDafter"), "");
  EXPECT_EQ(stops.match(), (StopStrings::Match{0, 6, 9}));
  EXPECT_EQ(stops.push("more"), "");
  EXPECT_EQ(stops.finish(), "");
}

TEST(StopStrings, TheStopItselfIsSentWhenAsked) {
  StopStrings stops = make({"END"}, true);
  EXPECT_EQ(stops.push("abcEN"), "abc");
  EXPECT_EQ(stops.push("Dafter"), "END");
  EXPECT_EQ(stops.finish(), "");
}

TEST(StopStrings, HeldTextComesOutAtTheEnd) {
  StopStrings stops = make({"\n\nUser:"});
  EXPECT_EQ(stops.push("answer\n\nUse"), "answer");
  EXPECT_EQ(stops.push(""), "");
  EXPECT_EQ(stops.finish(), "\n\nUse");
  EXPECT_FALSE(stops.match().has_value());
  EXPECT_EQ(stops.push("r:"), "r:") << "a new text does not go on from the last one";
}

TEST(StopStrings, TheFirstCompleteOneWinsAndOfThoseTheLongest) {
  StopStrings stops = make({"abcd", "bc", "xbc"});
  EXPECT_EQ(stops.push("_xbcd"), "_");
  EXPECT_EQ(stops.match(), (StopStrings::Match{2, 1, 4}));
}

TEST(StopStrings, CharactersStayWhole) {
  StopStrings stops = make({"z"});
  EXPECT_EQ(stops.push("a\xF0\x9F"), "a");
  EXPECT_EQ(stops.push("\x98"), "");
  EXPECT_EQ(stops.push("\x80"
                       "b"),
            "\xF0\x9F\x98\x80"
            "b");
  EXPECT_EQ(stops.push("\xC3"), "");
  EXPECT_EQ(stops.finish(), "\xC3");
}

TEST(StopStrings, HowTheTextIsCutChangesNothing) {
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    // The texts have few letters, so that strings overlap with themselves, each other and the text.
    const auto letters = [&](std::size_t most) {
      std::string text;
      for (std::size_t i = 1 + random() % most; i > 0; --i) {
        text +=
            random() % 8 == 0 ? "\xC3\xA9" : std::string(1, static_cast<char>('a' + random() % 2));
      }
      return text;
    };
    std::vector<std::string> strings;
    for (std::size_t i = random() % 4; i > 0; --i) strings.push_back(letters(6));
    const std::string text = letters(40);
    const bool include = random() % 2 == 0;
    StopStrings stops = make(strings, include);

    std::string sent;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t bytes = 1 + random() % 5;
      const std::string piece = stops.push(std::string_view(text).substr(at, bytes));
      EXPECT_EQ(utf8_valid_prefix(piece), piece.size()) << "half a character in " << text;
      sent += piece;
      at += bytes;
    }
    const auto expected = find_naively(text, strings);
    EXPECT_EQ(stops.match(), expected) << text;
    sent += stops.finish();
    const std::size_t end = !expected ? text.size() : (include ? expected->end : expected->begin);
    EXPECT_EQ(sent, text.substr(0, end)) << text;
  }
}

TEST(StopStrings, NoMoreIsHeldBackThanCouldBecomeAStop) {
  std::mt19937 random(12);
  const std::vector<std::string> strings = {"stop", "topple", "</s>"};
  for (int round = 0; round < 300; ++round) {
    StopStrings stops = make(strings);
    std::string text;
    std::string sent;
    while (text.size() < 40 && !stops.match()) {
      const char letter = "stople</ >"[random() % 10];
      text += letter;
      sent += stops.push({&letter, 1});
      if (stops.match()) break;
      const std::string held = text.substr(sent.size());
      bool could = held.empty();
      for (const std::string& string : strings) could = could || string.starts_with(held);
      EXPECT_TRUE(could) << "'" << held << "' was held back";
    }
  }
}

TEST(StopStrings, CopiesShareTheStringsAndMatchEachForItself) {
  std::vector<std::string> strings;
  for (std::size_t i = 0; i < StopStrings::kStringsMax; ++i) {
    strings.push_back(std::string(StopStrings::kStringBytesMax - 2, 'x') + std::to_string(10 + i));
  }
  const StopStrings whole = make(strings);
  const std::uint64_t before = bytes_allocated_so_far();
  std::vector<StopStrings> copies(100, whole);
  EXPECT_LT(bytes_allocated_so_far() - before, 100u * 1024);
  copies[1].push(strings[3].substr(0, 100));
  copies[0].push(strings[3]);
  copies[1].push(strings[3].substr(100));
  for (const int i : {0, 1}) {
    ASSERT_TRUE(copies[static_cast<std::size_t>(i)].match().has_value());
    EXPECT_EQ(copies[static_cast<std::size_t>(i)].match()->string, 3u);
  }
  EXPECT_FALSE(copies[2].match().has_value());
  EXPECT_EQ(whole.string(3), strings[3]);
}

TEST(StopStrings, ImpossibleListsAreRefused) {
  EXPECT_FALSE(StopStrings::make({"a", ""}).ok());
  EXPECT_FALSE(StopStrings::make({std::string(StopStrings::kStringBytesMax + 1, 'a')}).ok());
  const std::vector<std::string> many(StopStrings::kStringsMax + 1, "a");
  const auto refused = StopStrings::make(many);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "65 stop strings, at most 64");
}

}  // namespace
}  // namespace pagoda::text
