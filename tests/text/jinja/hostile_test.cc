// Every filter, method, test and operator counts its work: with operands of a million bytes or
// twenty thousand items, a hundred uses end at the limit, and nothing is allocated beyond it.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "counted_allocations.h"
#include "text/jinja/rendering.h"

namespace pagoda::text::jinja {
namespace {

constexpr RenderLimits kLimits = {.steps = 300'000, .bytes = 16U << 20};

// A hundred uses of an operation that counts 256 bytes a step come to 390,000 steps; a loop without
// any comes to a few hundred.
std::string hundred_times(std::string_view before, std::string_view expression) {
  return std::string(before) + "{% for i in range(100) %}{% set r = " + std::string(expression) +
         " %}{% endfor %}";
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  while (times-- > 0) all += text;
  return all;
}

// `allocated_max` bounds all allocations, also those freed at once.
void expect_limit(std::string_view what, std::string_view source, std::uint64_t allocated_max) {
  const JsonInput values = {{"t", std::string(1'000'000, 'x')},
                            {"w", std::string(1'000'000, 'x')},
                            {"s", std::string(1'000'000, ' ')},
                            {"u", repeated("Σ", 500'000)},
                            {"p", repeated("%%", 500'000)},
                            {"q", repeated("{{", 500'000)},
                            {"j", "[" + repeated("0,", 500'000) + "0]"},
                            {"l", JsonInput(std::vector<int>(20'000, 1))}};
  const auto parsed = Template::parse("test", source);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const std::uint64_t before = bytes_allocated_so_far();
  const auto rendered = parsed.value().render(
      [&](Heap& heap, Scope& scope) {
        for (const auto& [name, value] : values.items()) {
          scope.set(name, import_json(value, kClient, heap));
        }
      },
      0, kLimits);
  const std::uint64_t allocated = bytes_allocated_so_far() - before;
  ASSERT_FALSE(rendered.ok()) << what << " was not counted";
  EXPECT_EQ(rendered.error().code, ErrorCode::kOutOfRange) << rendered.error().message;
  EXPECT_LE(allocated, allocated_max) << what;
}

TEST(JinjaHostile, EveryMatchThatIsCountedIsAStep) {
  const auto parsed = Template::parse("test", "{{ ('x' * 400000).count('x') }}");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const auto rendered = parsed.value().render([](Heap&, Scope&) {}, 0, kLimits);
  ASSERT_FALSE(rendered.ok());
  EXPECT_EQ(rendered.error().code, ErrorCode::kOutOfRange);
}

constexpr std::uint64_t kAllocatedMax = 4 * (std::uint64_t{16} << 20);

constexpr std::string_view kTextUses[] = {
    // Filters.
    "t|capitalize",
    "t|lower",
    "t|upper",
    "t|title",
    "u|lower",
    "u|title",
    "s|trim",
    "t|trim(t)",
    "t|int",
    "t|float",
    "t|length",
    "t|count",
    "t|list",
    "t|first",
    "t|last",
    "t|reverse",
    "t|replace('x', 'y')",
    "t|replace('y', 'x')",
    "t|replace(t, '')",
    "t|replace('', '-')",
    "t|indent",
    "s|indent(t)",
    "'a\nb'|indent(t)",
    "''|indent(999999)",
    "t|tojson",
    "1|tojson(separators=(t ~ '1', t ~ '2'))",
    "[1]|tojson(indent=t)",
    "[1]|tojson(indent=999999)",
    "[1, 1]|tojson(separators=(t, t))",
    "t|tojson(true)",
    "j|from_json",
    "p|format",
    "'%s'|format(t)",
    "[t, t]|join",
    "[1, 2]|join(t)",
    "[t]|unique|list",
    "[t, t]|sort",
    "[t, t]|sort(case_sensitive=true)",
    "[t, t]|max",
    "[t, t]|min(true)",
    "[t]|map('upper')|list",
    "[t]|select('lower')|list",
    "[t]|string",
    "{t: 1}|dictsort",
    "{t: 1}|tojson(sort_keys=true)",
    "t|sort",
    "t|sum(start='')",
    "[1]|map(attribute=t)|list",
    "[1]|selectattr(t)|list",
    "[{t: 1}]|map(attribute=t)|list",
    // Tests.
    "t is lower",
    "t is upper",
    "t is in (t ~ '')",
    "t is eq (t ~ '')",
    "t is lt (t ~ '')",
    "t is in [t ~ '']",
    "t is in {t: 1}",
    // Methods.
    "t.capitalize()",
    "t.lower()",
    "t.upper()",
    "t.title()",
    "t.count('x')",
    "t.count('y')",
    "t.count(t)",
    "t.count('')",
    "t.find('y')",
    "t.rfind('y')",
    "t.find(t)",
    "t.rfind(t)",
    "t.startswith(t)",
    "t.endswith(t)",
    "t.endswith((t ~ 'y', t))",
    "t.removeprefix('x')",
    "t.removesuffix('y')",
    "t.replace('y', '')",
    "t.replace('x', 'y', 9)",
    "t.split('y')",
    "t.split()",
    "s.split()",
    "t.split('x', 9)",
    "t.rsplit('y')",
    "t.rsplit('y', 3)",
    "t.rsplit(none, 3)",
    "s.rsplit()",
    "t.splitlines()",
    "t.strip('x')",
    "t.strip(t)",
    "s.strip()",
    "s.lstrip()",
    "s.rstrip()",
    "t.isalpha()",
    "t.isdigit()",
    "s.isspace()",
    "t.join('ab')",
    "''.join([t])",
    "q.format()",
    "'{}'.format(t)",
    "p % ()",
    "'%s' % t",
    "{t: 1}.get(t)",
    "{w: 1}.get(t)",
    "{t: 1}.pop(t)",
    "[t].count(t ~ '')",
    "[t].index(t ~ '')",
    // Operators.
    "t + 'x'",
    "t ~ 1",
    "'x' * 1000000",
    "t == t ~ ''",
    "t < t ~ ''",
    "'y' in t",
    "(t ~ 'y') in t",
    "t not in t",
    "t[5]",
    "t[-1]",
    "t[1:]",
    "t[::2]",
    "t[::-1]",
    "t[::-999999]",
    "{t: 1, w: 2}",
    "{}[t]",
    "{}[t] is defined",
    "namespace()[t]",
    "dict([[t, 1], [w, 1]])",
    "namespace([[t, 1], [w, 1]])",
};

TEST(JinjaHostile, WorkOnLongTextsIsCounted) {
  for (const std::string_view use : kTextUses) {
    expect_limit(use, hundred_times("", use), kAllocatedMax);
  }
}

constexpr std::string_view kListUses[] = {
    "l|list",
    "l|reverse|list",
    "l|join",
    "l|length + l|sum",
    "l|sort",
    "l|unique|list",
    "l|max",
    "l|min",
    "l|map('abs')|list",
    "l|select|list",
    "l|tojson",
    "l|reject('odd')|list",
    "l|string",
    "l ~ ''",
    "l + l",
    "l * 2",
    "l == l[:]",
    "l < l[:]",
    "2 in l",
    "l.count(2)",
    "l[::2]",
    "l[1:]",
    "l[::-1]",
    "range(20000)",
    "[l]|tojson",
    "'{}'.format(l)",
    "'%s' % l",
};

constexpr std::string_view kDictUses[] = {
    "d|list",
    "d|items|list",
    "d|dictsort",
    "d.items()",
    "d.keys()",
    "d.values()",
    "d.copy()",
    "d == d.copy()",
    "dict(d)",
    "namespace(d)",
    "{}.update(d)",
    "d|tojson",
    "d|tojson(sort_keys=true)",
    "d|string",
    "d.pop(i) + d.pop(i + 100)",
};

// Long keys and names are neither copied nor read where there is nothing to compare them with.
TEST(JinjaHostile, LongKeysAreNotCopied) {
  const JsonInput values = {{"t", std::string(1'000'000, 'x')}};
  for (const std::string_view use :
       {"{t: 1}", "{}.get(t)", "''[t]", "{}[t]", "namespace()[t]", "namespace({t: 1})"}) {
    const std::uint64_t before = bytes_allocated_so_far();
    const auto rendered = render(hundred_times("", use), values);
    ASSERT_TRUE(rendered.ok()) << use << rendered.error().message;
    EXPECT_LE(bytes_allocated_so_far() - before, 3'000'000U) << use;
  }
}

TEST(JinjaHostile, WorkOnManyItemsIsCounted) {
  for (const std::string_view use : kListUses) {
    expect_limit(use, hundred_times("", use), kAllocatedMax);
  }
  constexpr std::string_view kDict =
      "{% set d = {} %}{% for i in range(5000) %}{% set _ = d.update({i: i}) %}{% endfor %}";
  for (const std::string_view use : kDictUses) {
    expect_limit(use, hundred_times(kDict, use), kAllocatedMax);
  }
}

TEST(JinjaHostile, StatementsAreCounted) {
  const std::string many = "{% for a in l %}{% for b in l %}";
  const std::string done = "{% endfor %}{% endfor %}";
  std::string parameters;
  std::string named;
  for (int i = 0; i < 20'000; ++i) {
    parameters += (i == 0 ? "p" : ",p") + std::to_string(i);
    named += ",p" + std::to_string(19'999 - i) + "=1";
  }
  const std::string macro = "{% macro m(" + parameters + ") %}{% endmacro %}";
  const std::string deep = repeated("{% for a in [1] %}", 150) + "{% for i in l %}{{ none_such }}" +
                           repeated("{{ none_such }}", 100) + "{% endfor %}" +
                           repeated("{% endfor %}", 150);
  const struct {
    std::string_view what;
    std::string source;
  } table[] = {
      {"loops", many + done},
      {"times", "{% for i in range(2000) %}{% set x = strftime_now('%%" + repeated("%%", 120) +
                    "') %}{% endfor %}"},
      {"texts", many + std::string(10'000, 'x') + done},
      {"prints", many + "{{ t }}" + done},
      {"set blocks", many + "{% set x %}" + std::string(1000, 'x') + "{% endset %}" + done},
      {"filter blocks", many + "{% filter upper %}{{ t }}{% endfilter %}" + done},
      {"scopes", many + "{% generation %}{% set x = 1 %}{% endgeneration %}" + done},
      {"macros", many + "{% macro m() %}{% endmacro %}" + done},
      {"methods", many + "{% set x = t.strip %}" + done},
      {"undefined names", many + "{% set x = {}['" + std::string(10'000, 'x') + "'] %}" + done},
      {"missing else", many + "{% set x = 1 if false %}" + done},
      {"parameters", hundred_times(macro, "m()")},
      {"named arguments", macro + "{{ m(" + named.substr(1) + ") }}"},
      {"arguments passed on",
       "{% set n = [] %}{{ ([n] * 100)|map('map', 'abs'" + repeated(", n", 20'000) + ")|list }}"},
      {"names looked up from deep within", deep},
      {"fields by name", "{{ ('{p0}' * 20000).format(" + named.substr(1) + ") }}"},
      {"a long path of attributes",
       "{% set r = [1] %}{% set _ = r.append(r) %}{{ [r]|map(attribute='1" +
           repeated(".1", 400'000) + "')|list }}"},
      {"a list that grows",
       "{% set n = namespace(l=l) %}" + many + "{% set n.l = n.l + n.l %}" + done},
      {"a text that grows",
       "{% set n = namespace(t=t) %}" + many + "{% set n.t = n.t ~ n.t %}" + done},
      {"appending", "{% set x = [] %}" + many + "{% set _ = x.append(x) %}" + done},
      {"keys", "{% set d = {} %}" + many + "{% set _ = d.update({loop.index * a: 1}) %}" + done},
  };
  for (const auto& row : table) expect_limit(row.what, row.source, kAllocatedMax);
}

TEST(JinjaHostile, ParsingTakesMemoryAndTimeByTheSourcesLength) {
  constexpr std::size_t kBytes = 1'000'000;
  const auto filled = [](std::string_view open, std::string_view part, std::string_view close) {
    return std::string(open) + repeated(part, (kBytes - open.size() - close.size()) / part.size()) +
           std::string(close);
  };
  for (const std::string& source : {
           filled("{% raw %}", "{%", "{% endraw %}"),
           filled("{% raw %}", "{% endraw", ""),
           filled("{{ [", "1,", "] }}"),
           filled("", "{{1}}", ""),
           filled("", "{#", "#}"),
           filled("", "{", ""),
           filled("{{ '", "\\x41", "' }}"),
           filled("{{", "''", "}}"),
           filled("{{ x", " ", "}}"),
           filled("{% if 1 %}", "{% elif 1 %}", "{% endif %}"),
           filled("{{ ", "x", " }}"),
           filled("{{ ", "9", " }}"),
           filled("{{ m(", "a=1,", ") }}"),
           filled("{% macro m(", "a,", ") %}{% endmacro %}"),
           filled("", "\n", ""),
           filled("", " \n{% set a = 1 %}", ""),
           filled("{{ 1", "<1", " }}"),
           filled("{{ {", "1:1,", "} }}"),
           filled("{% set ", "a,", "a = 1 %}"),
       }) {
    const std::uint64_t before = bytes_allocated_so_far();
    const auto parsed = Template::parse("test", source);
    EXPECT_LE(bytes_allocated_so_far() - before, 700 * kBytes) << source.substr(0, 40);
    if (!parsed.ok()) {
      EXPECT_LE(parsed.error().message.size(), 1100U);
    }
  }
}

TEST(JinjaHostile, MessagesAreShort) {
  const JsonInput values = {{"t", std::string(1'000'000, 'x')}};
  for (const std::string_view source :
       {"{{ raise_exception(t) }}", "{{ {}[t].x }}", "{{ t.x.y }}", "{{ '{' ~ t ~ '}' }}",
        "{{ ('{' ~ t ~ '}').format() }}", "{{ 1|map(t)|list }}", "{{ [1]|select(t)|list }}",
        "{{ t|from_json }}", "{{ ('\"' ~ t)|from_json }}"}) {
    const auto text = render(source, values);
    if (!text.ok()) {
      EXPECT_LE(text.error().message.size(), 1100U) << source;
    }
  }
}

}  // namespace
}  // namespace pagoda::text::jinja
