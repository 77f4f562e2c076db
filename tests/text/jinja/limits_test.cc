// Whatever a template does, rendering it ends, in bounded memory and stack.
#include <gtest/gtest.h>

#include <string>

#include "text/jinja/parser.h"
#include "text/jinja/rendering.h"

namespace pagoda::text::jinja {
namespace {

std::string repeat(std::string_view text, std::size_t times) {
  std::string repeated;
  while (times-- > 0) repeated += text;
  return repeated;
}

void expect_limit(std::string_view source, std::string_view part,
                  const JsonInput& values = JsonInput::object()) {
  const auto text = render(source, values);
  ASSERT_FALSE(text.ok()) << source.substr(0, 100);
  EXPECT_NE(text.error().message.find(part), std::string::npos) << text.error().message;
}

constexpr std::string_view kMany = "{% for a in range(99999) %}{% for b in range(99999) %}";
constexpr std::string_view kDone = "{% endfor %}{% endfor %}";

TEST(JinjaLimits, LoopsEnd) {
  expect_limit(std::string(kMany) + std::string(kDone), "more than 10000000 steps");
  expect_limit("{% for a in range(100001) %}{% endfor %}", "range: more than 100000 numbers");
  expect_limit(
      "{% set l = [1] %}{% for i in range(99) %}{% set l = l + l %}{% endfor %}"
      "{% set n = namespace(l=[1]) %}"
      "{% for i in range(99) %}{% set n.l = n.l + n.l %}{% endfor %}",
      "steps");
  expect_limit("{{ [1] * 99999999999 }}", "steps");
}

// An account that gives bytes as long as it was asked no more than so often.
class PatientAccount final : public MemoryAccount {
 public:
  explicit PatientAccount(int asks) : asks_(asks) {}
  bool take(std::uint64_t /*bytes*/) override { return asks_-- > 0; }

 private:
  int asks_;
};

// A loop that makes nothing still asks whether anybody wants its result.
TEST(JinjaLimits, WorkThatMakesNothingEndsWithTheAccount) {
  const std::string loops =
      "{% set l = range(999) %}{% for a in l %}{% for b in l %}" + std::string(kDone);
  PatientAccount patient(1'000'000);
  EXPECT_TRUE(render(loops, JsonInput::object(), {.account = &patient}).ok());
  PatientAccount asked(40);
  const auto text = render(loops, JsonInput::object(), {.account = &asked});
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, ErrorCode::kExhausted) << text.error().message;
}

TEST(JinjaLimits, OutputEnds) {
  expect_limit(std::string(kMany) + "{{ 'x' * 100000 }}" + std::string(kDone), "bytes");
  const std::string page(1000, 'x');
  RenderLimits limits;
  limits.output_bytes = 100'000;
  const std::string source = "{% for a in range(999) %}" + page + "{% endfor %}";
  EXPECT_NE(
      shown_or_error(source, JsonInput::object(), limits).find("output has more than 100000 bytes"),
      std::string::npos);
}

TEST(JinjaLimits, TextsOnTheWayEnd) {
  expect_limit("{{ 'x' * 99999999999 }}", "bytes");
  expect_limit(
      "{% set n = namespace(t='x') %}"
      "{% for i in range(99) %}{% set n.t = n.t ~ n.t %}{% endfor %}",
      "bytes");
  expect_limit("{% set b = 'x' * 99999999 %}{{ ('{0}' * 1000000).format(b) }}", "bytes");
  expect_limit("{% set b = 'x' * 100000 %}{{ b.replace('x', b) }}", "bytes");
  expect_limit("{% set b = 'x' * 100000 %}{{ range(99999) | join(b) }}", "bytes");
  expect_limit("{% set b = 'x' * 100000 %}{{ b.join(b) }}", "bytes");
  expect_limit("{% set b = ' ' * 100000 %}{{ range(99999) | list | tojson(indent=b) }}", "bytes");
  expect_limit("{% set b = ' ' * 100000 %}{{ range(99999) | list | tojson(separators=(b, b)) }}",
               "bytes");
  expect_limit("{% set b = ' ' * 100000 %}{{ ('\\n' * 100000) | indent(b, blank=true) }}", "bytes");
}

TEST(JinjaLimits, LookingThroughLongTextsIsWork) {
  expect_limit(
      "{% set b = 'x' * 10000000 %}{% for i in range(99999) %}"
      "{% if 'y' in b %}{% endif %}{% endfor %}",
      "steps");
  expect_limit(
      "{% set b = 'x' * 10000000 %}{% for i in range(99999) %}"
      "{% set c = b.count('y') %}{% endfor %}",
      "steps");
  expect_limit(
      "{% set b = 'x' * 10000000 %}{% for i in range(99999) %}"
      "{% set c = b[5] %}{% endfor %}",
      "steps");
}

TEST(JinjaLimits, RecursionEnds) {
  expect_limit("{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}", "deeper than 1000 levels");
  expect_limit(
      "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}"
      "{{ a() }}",
      "deeper than 1000 levels");
}

TEST(JinjaLimits, DeepExpressionsAreRefusedBeforeTheyRun) {
  const auto nested = [](std::string_view open, std::string_view close) {
    return "{{ " + repeat(open, 50'000) + "1" + repeat(close, 50'000) + " }}";
  };
  expect_limit(nested("(", ")"), "nested deeper than");
  expect_limit(nested("[", "]"), "nested deeper than");
  expect_limit(nested("{1:", "}"), "nested deeper than");
  expect_limit(nested("-", ""), "nested deeper than");
  expect_limit(nested("not ", ""), "nested deeper than");
  expect_limit(nested("1 if 1 else ", ""), "nested deeper than");
  expect_limit(nested("", "+1"), "an expression of more than");
  expect_limit(nested("", "~1"), "an expression of more than");
  expect_limit(nested("", "|abs"), "an expression of more than");
  expect_limit(nested("", ".a"), "an expression of more than");
  expect_limit(nested("", "(1)"), "an expression of more than");
  expect_limit(nested("", " and 1"), "an expression of more than");
}

TEST(JinjaLimits, DeepBlocksAreRefusedBeforeTheyRun) {
  expect_limit(repeat("{% if 1 %}", 50'000), "nested deeper than");
  expect_limit(repeat("{% for i in x %}", 50'000), "nested deeper than");
  expect_limit(repeat("{% filter upper %}", 50'000), "nested deeper than");
}

TEST(JinjaLimits, WhatIsJustWithinTheLimitsRuns) {
  const std::string sum = "{{ 0" + repeat("+1", kExpressionHeightMax - 1) + " }}";
  EXPECT_EQ(shown_or_error(sum), std::to_string(kExpressionHeightMax - 1));
  const std::string blocks =
      repeat("{% if 1 %}", kNestingMax - 1) + "x" + repeat("{% endif %}", kNestingMax - 1);
  EXPECT_EQ(shown_or_error(blocks), "x");
}

TEST(JinjaLimits, ValuesThatContainThemselvesAreNoTrap) {
  const std::string ring = "{% set l = [1] %}{% set _ = l.append(l) %}";
  expect_limit(ring + "{{ l }}", "deeper than");
  expect_limit(ring + "{{ l | tojson }}", "deeper than");
  expect_limit(ring + "{% set m = [1] %}{% set _ = m.append(m) %}{{ l == m }}", "deeper than");
  EXPECT_EQ(shown_or_error(ring + "{{ l | length }}"), "2");
  EXPECT_EQ(shown_or_error("{% set n = namespace(x=1) %}{% set n.n = n %}{{ n.n.n.x }}"), "1");
}

TEST(JinjaLimits, DeepValuesAreFreedWithoutRecursion) {
  EXPECT_EQ(shown_or_error("{% set n = namespace(l=[]) %}{% for i in range(99999) %}"
                           "{% set n.l = [n.l] %}{% endfor %}{{ n.l | length }}"),
            "1");
}

TEST(JinjaLimits, DeepJsonIsRefused) {
  JsonInput deep = JsonInput::array();
  for (int i = 0; i < 2000; ++i) deep = JsonInput::array({deep});
  expect_limit("{{ v }}", "deeper than 1000 levels", {{"v", deep}});
}

TEST(JinjaLimits, ALoopMayBeLookedAtAfterItEnded) {
  EXPECT_EQ(shown_or_error("{% set n = namespace(l=1) %}{% for i in [7, 8] %}{% set n.l = loop %}"
                           "{% endfor %}{{ n.l.length }}{{ n.l.previtem }}"),
            "28");
}

TEST(JinjaLimits, LongTemplatesAreRefused) {
  const auto parsed = Template::parse("test", std::string(Template::kSourceBytesMax + 1, 'x'));
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().message, "test: a template of 1048577 bytes, at most 1048576");
}

}  // namespace
}  // namespace pagoda::text::jinja
