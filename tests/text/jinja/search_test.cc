// Compares searches with the standard library's, over words that nearly match everywhere.
#include "text/jinja/search.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace pagoda::text::jinja {
namespace {

std::string word(std::mt19937& random, std::size_t size_max) {
  std::string made(random() % (size_max + 1), 'a');
  for (char& c : made) {
    if (random() % 4 == 0) c = 'b';
  }
  return made;
}

TEST(JinjaSearch, FindsWhatTheStandardLibraryFinds) {
  std::mt19937 random(7);
  Heap heap({});
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = word(random, 30);
    const std::string needle = word(random, 6);
    EXPECT_EQ(Search(needle, Direction::kForward, heap).next(text), text.find(needle));
    EXPECT_EQ(Search(needle, Direction::kBackward, heap).next(text), text.rfind(needle));
  }
}

// Comparing at every offset would take 250 thousand million comparisons; the test counts them.
TEST(JinjaSearch, TakesStepsByTheSumOfBothLengths) {
  const std::string text(1'000'000, 'a');
  const std::string needle = std::string(500'000, 'a') + 'b';
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    Heap heap({.steps = 150'000});
    EXPECT_EQ(Search(needle, direction, heap).next(text), std::string::npos);
    EXPECT_THROW(Search(needle, direction, heap).next(text), Fault);
  }
}

}  // namespace
}  // namespace pagoda::text::jinja
