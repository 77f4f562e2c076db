// Values keep the origin of every byte through all operations of templates.
#include <gtest/gtest.h>

#include <string>

#include "text/jinja/rendering.h"

namespace pagoda::text::jinja {
namespace {

// Returns 't' for bytes of the template, 'c' for the client's.
std::string letters(std::string_view source, const JsonInput& values) {
  const auto text = render(source, values);
  if (!text.ok()) return text.error().message;
  std::string kinds;
  for (const OriginText::Run& run : text.value().runs()) {
    kinds.resize(run.end, run.origin == kClient ? 'c' : 't');
  }
  EXPECT_EQ(kinds.size(), text.value().size());
  return kinds;
}

TEST(JinjaOrigins, FollowTheBytes) {
  const JsonInput values = {{"v", "ab"}, {"n", 12}, {"d", {{"k", "x\"y"}}}, {"l", {"p", "q"}}};
  const struct {
    std::string source;
    std::string kinds;
  } table[] = {
      {"xy{{ v }}z", "ttcct"},
      {"{{ 'x' + v + 'y' }}", "tcct"},
      {"{{ 'x' ~ n }}", "tcc"},
      {"{{ n + 0 }}", "tt"},
      {"{{ v | upper }}{{ v | title }}", "cccc"},
      {"{{ (' ' + v + ' ') | trim }}", "cc"},
      {"{{ (v + '-' + v)[1:4] }}", "ctc"},
      {"{{ ('12' + v)[::-1] }}", "cctt"},
      {"{{ ('x' + v).replace('a', '..') }}", "tttc"},
      {"{{ 'x,y'.replace('x', v) }}", "cctt"},
      {"{{ (v + ',z').split(',') | join('+') }}", "cctt"},
      {"{{ l | join('+') }}", "ctc"},
      {"{{ d | tojson }}", "ttcttttcccctt"},  // {"k": "x\"y"}: the escape is the client's
      {"{{ l }}", "ttcttttctt"},              // ['p', 'q']
      {"{{ '%s!' % v }}{{ '{}!'.format(v) }}", "cctcct"},
      {"{% set b %}<{{ v }}>{% endset %}{{ b }}", "tcct"},
      {"{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(v) }}", "tcct"},
      {"{% filter upper %}<{{ v }}>{% endfilter %}", "tcct"},
      {"{% for c in v %}{{ c }}.{% endfor %}", "ctct"},
      {"{% for k, x in d.items() %}{{ k }}{% endfor %}", "c"},
      {"{{ ('[\"' + v + '\"]') | from_json | first }}", "cc"},
      {"{{ ('x\\n' + v) | indent(2) }}", "ttttcc"},
      {"{{ v if v == 'ab' else 'zz' }}", "cc"},
      {"{{ v | default('zz') }}{{ u | default('zz') }}", "cctt"},
  };
  for (const auto& row : table) EXPECT_EQ(letters(row.source, values), row.kinds) << row.source;
}

}  // namespace
}  // namespace pagoda::text::jinja
