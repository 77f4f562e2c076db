#include "tidy/checking_tests.h"

#include <set>

#include "tidy/function_length.h"

namespace pagoda::tidy {
namespace {

using Words = std::set<std::string_view>;

// The identifiers from one line to another, both included; lines count from 1.
Words words_of(const std::vector<std::string_view>& lines, const Function& function) {
  Words words;
  for (int i = function.first_line; i <= function.last_line; ++i) {
    const std::string_view line = lines[static_cast<std::size_t>(i - 1)];
    for (std::size_t at = 0; at < line.size();) {
      std::size_t end = at;
      while (end < line.size() && is_word(line[end])) ++end;
      if (end > at) words.insert(line.substr(at, end - at));
      at = end + 1;
    }
  }
  return words;
}

bool is_check(std::string_view word) {
  return word.starts_with("EXPECT_") || word.starts_with("ASSERT_") || word == "FAIL" ||
         word.starts_with("ADD_FAILURE") || word.starts_with("expect");
}

bool has_check(const Words& words, const std::set<std::string>& checking) {
  for (const std::string_view word : words) {
    if (is_check(word) || checking.contains(std::string(word))) return true;
  }
  return false;
}

bool is_test(const Function& function) {
  const std::string_view head = function.head;
  return head.starts_with("TEST(") || head.starts_with("TEST_F(") || head.starts_with("TEST_P(") ||
         head.starts_with("TYPED_TEST(") || head.starts_with("TYPED_TEST_P(");
}

// "run_mix" of "void run_mix(int count)".
std::string name_of(const Function& function) {
  const std::size_t end = function.head.find('(');
  std::size_t begin = end == std::string::npos ? 0 : end;
  while (begin > 0 && is_word(function.head[begin - 1])) --begin;
  return function.head.substr(begin, end - begin);
}

}  // namespace

Findings tests_that_check_nothing(const SourceText& source) {
  const std::vector<std::string_view> lines = split_lines(source.code);
  const std::vector<Function> functions = list_functions(source).functions;
  std::set<std::string> checking;
  for (std::size_t before = ~std::size_t{0}; before != checking.size();) {
    before = checking.size();
    for (const Function& function : functions) {
      if (!is_test(function) && has_check(words_of(lines, function), checking)) {
        checking.insert(name_of(function));
      }
    }
  }
  Findings findings;
  for (const Function& function : functions) {
    if (!is_test(function) || has_check(words_of(lines, function), checking)) continue;
    findings.push_back({function.first_line, "checks nothing: " + function.head});
  }
  return findings;
}

}  // namespace pagoda::tidy
