// The error of a broken template names its position.
#include <gtest/gtest.h>

#include <string>

#include "text/jinja/rendering.h"

namespace pagoda::text::jinja {
namespace {

struct Broken {
  std::string source;
  std::string place;  // line:column
  std::string part;   // a part of the message
};

void expect_broken(const std::vector<Broken>& table, ErrorCode code) {
  for (const Broken& broken : table) {
    const auto text = render(broken.source, {{"none_value", nullptr}, {"word", "abc"}});
    ASSERT_FALSE(text.ok()) << broken.source << " gave " << text.value().bytes();
    EXPECT_EQ(text.error().code, code) << broken.source;
    const std::string expected = "test:" + broken.place + ": ";
    EXPECT_TRUE(text.error().message.starts_with(expected))
        << broken.source << "\n"
        << text.error().message << "\nnot at " << broken.place;
    EXPECT_NE(text.error().message.find(broken.part), std::string::npos) << text.error().message;
  }
}

TEST(JinjaErrors, ATemplateThatCannotBeReadSaysWhere) {
  expect_broken(
      {
          {"{{ a", "1:1", "never closed with '}}'"},
          {"ab\n  {% if x %}", "2:13", "expected 'endif', found the end"},
          {"{% if %}{% endif %}", "1:7", "expected an expression"},
          {"{% if x %}{% endfor %}", "1:14", "unknown statement 'endfor'"},
          {"x{# never", "1:2", "a comment that is never closed"},
          {"{% raw %} {{ x", "1:1", "a raw block that is never closed"},
          {"{{ 'abc }}", "1:4", "a string that is never closed"},
          {"{{ a b }}", "1:6", "expected '}}', found 'b'"},
          {"{{ a + }}", "1:8", "expected an expression, found '}}'"},
          {"{{ (1, 2 }}", "1:10", "expected ')', found '}'"},
          {"{{ [1, 2) }}", "1:9", "expected ']', found ')'"},
          {"{{ 1 $ 2 }}", "1:6", "unexpected character '$'"},
          {"é{{ é.1x }}", "1:8", "expected '}}', found 'x'"},
          {"{% for in x %}{% endfor %}", "1:11", "expected 'in', found 'x'"},
          {"{% for x of y %}{% endfor %}", "1:10", "expected 'in'"},
          {"{% for x in y recursive %}{% endfor %}", "1:15", "recursive loops are not supported"},
          {"{% set 3 = x %}", "1:8", "expected a name"},
          {"{% set x = 3", "1:1", "never closed with '%}'"},
          {"{% macro m(a %}{% endmacro %}", "1:15", "expected ')', found '}'"},
          {"{% macro m(1) %}{% endmacro %}", "1:12", "expected a name"},
          {"{% break %}", "1:4", "'break' outside a loop"},
          {"{% for i in x %}{% macro m() %}{% continue %}{% endmacro %}{% endfor %}", "1:35",
           "'continue' outside a loop"},
          {"{% include 'x' %}", "1:4", "unknown statement 'include'"},
          {"{% 3 %}", "1:4", "expected the name of a statement"},
          {"{{ f(a=1, 2) }}", "1:11", "expected an argument with a name"},
          {"{{ f(*a) }}", "1:6", "not supported"},
          {"{{ a[1:2:3:4] }}", "1:12", "expected ']'"},
          {"{{ a[] }}", "1:6", "expected an expression"},
          {"{{ '\\u12' }}", "1:4", "a broken escape"},
          {"{{ '\\ud800' }}", "1:4", "U+D800"},
          {"{{ 99999999999999999999 }}", "1:4", "out of range"},
          {"{{ x | }}", "1:8", "expected a name"},
          {"{{ x is }}", "1:9", "expected a name"},
          {"{{ {1 2} }}", "1:7", "expected ':'"},
          {"a\r\nb\r\n{{ ] }}", "3:4", "']' closes nothing"},
      },
      ErrorCode::kCorrupt);
}

TEST(JinjaErrors, ATemplateThatFailsWhileItRunsSaysWhere) {
  expect_broken(
      {
          {"\n{{ raise_exception('no such luck') }}", "2:19", "no such luck"},
          {"{{ missing.field }}", "1:11", "'missing' is undefined"},
          {"{{ 'a' + 1 }}", "1:8", "'+' between a string and a integer"},
          {"{{ 'a' + none_value }}", "1:8", "'+' between a string and a none"},
          {"{{ missing + 'a' }}", "1:12", "'missing' is undefined"},
          {"{{ word | nonsense }}", "1:11", "unknown filter 'nonsense'"},
          {"{{ word is nonsense }}", "1:9", "unknown test 'nonsense'"},
          {"{{ word() }}", "1:8", "a string cannot be called"},
          {"{{ nothing() }}", "1:11", "'nothing' is undefined"},
          {"{{ word.center(3) }}", "1:15", "the method 'center' of a string is not supported"},
          {"{% for x in 3 %}{% endfor %}", "1:1", "a integer has no items"},
          {"{% for a, b in [[1]] %}{% endfor %}", "1:1", "1 values for 2 names"},
          {"{% set word.x = 1 %}", "1:1", "'word' is not a namespace"},
          {"{{ 1 // 0 }}", "1:6", "division by zero"},
          {"{{ 9223372036854775807 + 1 }}", "1:24", "beyond 64 bits"},
          {"{{ 2 ** 64 }}", "1:6", "beyond 64 bits"},
          {"{{ 1 < 'a' }}", "1:4", "have no order"},
          {"{{ [1][::0] }}", "1:7", "step 0"},
          {"{{ {[1]: 2} }}", "1:4", "a list cannot be a key"},
          {"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "1:35", "takes at most 1"},
          {"{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "1:35", "no argument 'b'"},
          {"{{ word | replace('a') }}", "1:11", "replace needs 'new'"},
          {"{{ missing | tojson }}", "1:14", "no JSON"},
          {"{{ '{' | from_json }}", "1:10", "is not JSON"},
          {"{{ ''.split('') }}", "1:12", "separator is empty"},
          {"{{ range(1, 2, 0) }}", "1:9", "step is 0"},
          {"{{ [1, 'a'] | sort }}", "1:15", "have no order"},
          {"{{ 'a' in 3 }}", "1:4", "nothing can be in a integer"},
          {"{% macro m() %}\n\n{{ missing.x }}{% endmacro %}{{ m() }}", "3:11", "undefined"},
      },
      ErrorCode::kInvalidArgument);
}

TEST(JinjaErrors, ATemplateThatIsNotUtf8IsRefused) {
  const auto parsed = Template::parse("test", "ab\xFF");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().message, "test: the template is not UTF-8 at byte 2");
}

TEST(JinjaErrors, AValueThatIsNotUtf8IsRefused) {
  EXPECT_EQ(shown_or_error("{{ v }}", {{"v", "a\xC3"}}),
            "error: test: a string is not UTF-8 at byte 1");
}

}  // namespace
}  // namespace pagoda::text::jinja
