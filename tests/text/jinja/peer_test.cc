// Compares filters, methods, tests and operators with Jinja2 (tests/data/make_jinja_fixtures.py):
// the text is Jinja2's, or the template is refused; templates that Jinja2 refuses are refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

#include "test_data.h"
#include "text/jinja/rendering.h"

namespace pagoda::text::jinja {
namespace {

// The errors of features that the dialect leaves out (docs/guide/chat_templates.md).
constexpr std::array<std::string_view, 7> kLeftOut = {"not supported",
                                                      "are supported",
                                                      "beyond 64 bits",
                                                      "beyond 53 bits",
                                                      "sameas between",
                                                      "cannot be a key",
                                                      "a root of a negative number"};

bool is_left_out(std::string_view message) {
  return std::any_of(kLeftOut.begin(), kLeftOut.end(), [&](std::string_view words) {
    return message.find(words) != std::string_view::npos;
  });
}

TEST(JinjaPeer, GivesTheSameTextOrRefuses) {
  std::ifstream file(test_data() + "/jinja/expressions.json");
  const JsonInput rows = JsonInput::parse(file);
  ASSERT_GT(rows.size(), 20'000U);
  std::size_t left_out = 0;
  for (const JsonInput& row : rows) {
    const std::string source = row[0];
    const auto text = render(source);
    if (row[1].is_null()) {
      EXPECT_FALSE(text.ok()) << source << " gave " << text.value().bytes();
    } else if (text.ok()) {
      EXPECT_EQ(text.value().bytes(), row[1].get<std::string>()) << source;
    } else {
      EXPECT_TRUE(is_left_out(text.error().message)) << source << ": " << text.error().message;
      ++left_out;
    }
  }
  EXPECT_LT(left_out, rows.size() / 50);
}

}  // namespace
}  // namespace pagoda::text::jinja
