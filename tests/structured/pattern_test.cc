#include "structured/grammar_cases.h"

namespace pagoda::structured {
namespace {

Result<std::shared_ptr<const Grammar>> regex_grammar(const std::string& pattern) {
  return grammar_from_regex(pattern);
}

TEST(PatternTest, ExpressionsMatchWholeTexts) {
  expect_cases({{"abc", {"abc"}, {"ab", "abcd", ""}},
                {"a|bc|", {"a", "bc", ""}, {"b", "abc"}},
                {"a*b+c?", {"b", "aabb", "bc"}, {"", "ac", "bcc"}},
                {"(ab){2,3}", {"abab", "ababab"}, {"ab", "abababab", "aba"}},
                {"a{3}", {"aaa"}, {"aa", "aaaa"}},
                {"a{2,}", {"aa", "aaaaa"}, {"a"}},
                {"[a-cx-]", {"a", "c", "x", "-"}, {"d", ""}},
                {"[^a-c]", {"d", "\n", "\xC3\xA9"}, {"a", "de"}},
                {"\\d{3}-\\w+\\s\\S", {"123-ab z", "000-_\t."}, {"12-ab z", "123-ab  "}},
                // Both ECMA 262 and Python's re say so: é is a word's to one, U+0660 a digit.
                {"\\W", {"-", " ", "\xE2\x80\x94"}, {"a", "_", "\xC3\xA9", "\xD9\xA0"}},
                {"\\D", {"a", "\xC3\xA9", "\xE4\xB8\xAD"}, {"1", "\xD9\xA0"}},
                {"[^\\d]", {"a", "\xC3\xA9"}, {"1", "\xD9\xA0"}},
                {"[^\\w]", {"-"}, {"a", "\xC3\xA9"}},
                {"[^\\W]", {"a", "_"}, {"-", "\xC3\xA9"}},
                {"\\w|\\d", {"a", "1"}, {"\xC3\xA9", "\xD9\xA0"}},
                {"\\s", {" ", "\t", "\xC2\xA0"}, {"\x1C", "\xC2\x85", "\xEF\xBB\xBF", "a"}},
                {"\\S", {"a", "\xC3\xA9"}, {" ", "\x1C", "\xC2\x85", "\xEF\xBB\xBF"}},
                {".", {"a", "\xF0\x9F\x98\x80"}, {"\n", "ab", "\xF0\x9F"}},
                {"\\u00e9|\\x41|\\u{1F600}|\\ud83d\\ude01",
                 {"\xC3\xA9", "A", "\xF0\x9F\x98\x80", "\xF0\x9F\x98\x81"},
                 {"e"}},
                {"^(?:yes|no)$", {"yes", "no"}, {"^yes"}},
                {"(?<year>\\d{4})(?P<m>\\d\\d)", {"202401"}, {"2024"}},
                {"\\(\\)\\[\\.\\*\\/\\-\\$", {"()[.*/-$"}, {"()"}},
                {"a+?b*?", {"ab", "a"}, {"b"}},
                {"(a*)*", {"", "aaa"}, {"b"}},
                {"(a?){3}", {"", "a", "aaa"}, {"aaaa"}},
                {"(a|b)*abb", {"abb", "aababb"}, {"ab", "abba"}},
                {"[\\u4e00-\\u9fff]{1,2}", {"\xE4\xB8\xAD", "\xE4\xB8\xAD\xE6\x96\x87"}, {"a", ""}},
                {"[^\\u0000-\\u007f]",
                 {"\xC2\x80", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF"},
                 {"a", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC0\x80"}}},
               regex_grammar);
}

TEST(PatternTest, WhatIsNotSupportedIsRefusedWithItsPlace) {
  expect_errors({{"a(?=b)", "at byte 2: this kind of group"},
                 {"(?i)a", "at byte 1: this kind of group"},
                 {"(a)\\1", "at byte 4: this escape"},
                 {"\\bword", "this escape"},
                 {"\\p{L}", "this escape"},
                 {"a**", "a second quantifier"},
                 {"*a", "a quantifier without"},
                 {"a{2,1}", "the least count is above the most"},
                 {"a{,3}", "{ wants a number"},
                 {"a{99999999}", "at most 7 digits"},
                 {"(a", "expected )"},
                 {"a)", "a ) without"},
                 {"[a", "expected ]"},
                 {"[]", "an empty class"},
                 {"[z-a]", "a range that ends before"},
                 {"a^b", "^ is supported"},
                 {"a$b", "$ is supported"},
                 {"\\ud83d", "a surrogate"},
                 {"\\u{D800}", "a surrogate"},
                 {"[\\u{DFFF}]", "a surrogate"},
                 {"\xC3", "is not UTF-8"},
                 {std::string(70, '(') + std::string(70, ')'), "nested deeper than 64"}},
                regex_grammar);
}

// Each would take exponential time or memory in an engine that backtracks or expands.
TEST(PatternTest, HostileExpressionsTakeLittle) {
  const std::string many(40, 'a');
  expect_cases({{"(a+)+b", {"aaab"}, {many}},
                {"(a|a)*b", {"ab"}, {many}},
                {"((a{1,1000}){1,1000}){1,1000}b", {"aab"}, {many}},
                {"(a|b)*a(a|b){30}", {"a" + std::string(30, 'b')}, {"b" + std::string(30, 'b')}},
                {"[a-z]{1,1000000}", {"abc"}, {""}}},
               regex_grammar);
  // Repetitions of what may be empty are written out.
  expect_errors({{"((a{0,1000}){0,1000}){0,1000}b", "the grammar needs more than"}}, regex_grammar);
}

}  // namespace
}  // namespace pagoda::structured
