"""Snippets of template code for make_chat_fixtures.py: every statement, filter, test, method and
operator that chat templates use, and white space of all kinds around tags."""

LINES = r'''
{{ 1 + 2 * 3 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 1.0 }} {{ 1e16 }} {{ 1e-5 }} {{ 123456789012345680.0 }} {{ 0.1 + 0.2 }}
{{ [1, 'a', "it's", 'q"', none, true, 1.5, {'k': [1, (2,)]}] }}
{{ {'a': 1, 'b': {'c': "x\ny"}} | tojson }} {{ {'a': 1, 'b': [1,2,{}], 'e': [], 'd': {}} | tojson(indent=2) }} {{ {'b':1,'a':2}|tojson(sort_keys=true, separators=(',',':')) }} {{ 'é\u2028\x7f<>&' | tojson }} {{ 'é😀' | tojson(ensure_ascii=true) }}
{{ 'abcdef'[1:3] }} {{ 'abcdef'[::-1] }} {{ 'abcdef'[-2:] }} {{ 'héllo'[1] }} {{ [1,2,3,4][::2] }} {{ [1,2,3][5:] }} {{ 'abc'[::-2] }} {{ [1,2,3][-1] }} {{ (1,2,3)[1:] }}
{{ 'a' ~ 1 ~ none ~ true ~ [1] }} {{ 'x' * 3 }} {{ [1] * 2 }} {{ 'a' in 'cat' }} {{ 3 in [1,2] }} {{ 'k' in {'k':1} }} {{ 'z' not in 'cat' }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' < 'b' }} {{ [1,2] == [1,2] }} {{ (1,2) == [1,2] }} {{ undefined1 == undefined2 }} {{ not x }} {{ x is defined }} {{ x is not defined }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d) = [3, 4] %}{{ c + d }}
{% for i in range(3) %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.depth }};{% endfor %}
{% for k, v in {'a':1,'b':2}.items() %}{{ k }}={{ v }}{% if not loop.last %}, {% endif %}{% endfor %}
{% for x in [] %}x{% else %}empty{% endfor %} {% for x in [1,2,3,4] if x is even %}{{ x }}/{{ loop.length }} {% endfor %}
{% for x in [1,2,3,4,5] %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% set x = 0 %}{% for i in [1,2,3] %}{{ x }}{% set x = i %}{{ x }} {% endfor %}{{ x }}
{% set ns = namespace(a=1, b='x') %}{% for i in [1,2] %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }} {{ ns.b }} {{ ns.zz is defined }}
{% macro m(a, b='dflt', c=none) %}[{{ a }}|{{ b }}|{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(c=3, a=1) }}{{ m() }}
{% macro fact(n) %}{% if n <= 1 %}1{% else %}{{ n * (fact(n - 1) | int) }}{% endif %}{% endmacro %}{{ fact(5) }}
{% set blk %}  text {{ 1 + 1 }} {% endset %}[{{ blk }}] {% set blk2 | upper | trim %} abc {% endset %}[{{ blk2 }}]
{% filter upper %}shout {{ 'é' }}{% endfilter %} {% filter replace('a', 'b') | upper %}banana{% endfilter %}
{{ ' x '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'xxa'.lstrip('x') }}|{{ 'axx'.rstrip('x') }}|{{ '\u3000\xa0 a \x1c'.strip() }}|
{{ 'a,b,c'.split(',') }} {{ 'a b  c '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ ' a b c'.split(None, 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a\nb\r\nc\n'.splitlines() }}
{{ 'abc'.startswith('a') }} {{ 'abc'.startswith(('x','ab')) }} {{ 'abc'.endswith('bc') }} {{ 'abcabc'.replace('b','X') }} {{ 'abc'.replace('','-') }} {{ 'aaa'.replace('a','b',2) }} {{ 'abc'.find('c') }} {{ 'éabc'.find('c') }} {{ 'abc'.rfind('z') }} {{ 'aXbX'.count('X') }} {{ ','.join(['a','b']) }}
{{ 'hELLO wORLD-foo (bar'.title() }} {{ 'hELLO wORLD-foo (bar it\'s' | title }} {{ 'hELLO wORLD' | capitalize }} {{ 'ÀÉß' | lower }} {{ 'àéž' | upper }} {{ '{} of {} {{}}'.format(1, 'b') }} {{ '{1}{0}'.format(1, 2) }} {{ '{a}'.format(a=3) }}
{{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b') }} {{ {'a': 1}.get('b', 5) }} {{ {'a': 1, 'b': 2}.keys() | list }} {{ {'a': 1}.values() | list }} {{ {'a':1}.a }} {{ {'items': 3}['items'] }} {{ {'a': 1}['zz'] is defined }} {{ ({'a': 1}).items() | list }}
{{ [3,1,2] | sort }} {{ ['b','A','c'] | sort }} {{ ['b','A','c'] | sort(case_sensitive=true) }} {{ [3,1,2] | sort(reverse=true) }} {{ {'b':1,'A':2} | dictsort }} {{ {'b':1,'a':2} | dictsort(by='value') }} {{ [1,2,1,'a','A'] | unique | list }} {{ [{'n':2},{'n':1}] | sort(attribute='n') }} {{ [{'n':{'m':2}}] | map(attribute='n.m') | list }}
{{ [1,2,3] | first }} {{ [1,2,3] | last }} {{ [1,2,3] | length }} {{ 'héé' | length }} {{ [1,2,3] | sum }} {{ [1,5,3] | max }} {{ [4,1,3] | min }} {{ [1,2,3] | reverse | list }} {{ 'abc' | reverse }} {{ 'abc' | list }} {{ {'a':1} | list }} {{ [1,[2]] | join('-') }} {{ [{'a':1},{'a':2}] | join(', ', attribute='a') }}
{{ [{'r':'u','c':1},{'r':'s','c':2}] | selectattr('r', 'equalto', 'u') | list }} {{ [{'r':'u'},{}] | selectattr('r', 'defined') | list }} {{ [{'r':'u'},{'r':''}] | selectattr('r') | list }} {{ [{'r':'u'},{'r':'s'}] | rejectattr('r', 'in', ['s']) | list }} {{ [1,2,3] | select('odd') | list }} {{ [1,none,3] | reject('none') | list }} {{ ['a','b'] | map('upper') | join }} {{ none | selectattr('x') | list }}
{{ x0 | default('d') }} {{ '' | default('d', true) }} {{ none | default('d') }} {{ '5' | int + 1 }} {{ '4.7' | int }} {{ 'z' | int }} {{ 4.7 | int }} {{ '1.5' | float }} {{ -3 | abs }} {{ 5 | string + 'a' }} {{ 'a%s%d' | format('b', 3) }} {{ 'x %s' % 'y' }}
{{ 'l1\nl2\n\nl3' | indent(2) }} {{ 'l1\nl2' | indent(2, first=true) }} {{ 'a\n' | indent }}|
{{ 'a' is string }}{{ 1 is string }}{{ {} is mapping }}{{ [] is sequence }}{{ 'a' is iterable }}{{ 1 is iterable }}{{ none is none }}{{ true is boolean }}{{ 1 is boolean }}{{ true is true }}{{ 1 is number }}{{ true is number }}{{ 1 is integer }}{{ 1.0 is float }}{{ x9 is iterable }}{{ x9 is sequence }}{{ 3 is divisibleby 3 }}{{ 3 is odd }}{{ 2 is in [1,2] }}{{ 'a' is eq 'a' }}{{ 'AB' is upper }}{{ 'ab' is lower }}{{ m is callable }}
{{ 'yes' if 1 else 'no' }} {{ 'yes' if 0 }} {{ 'a' if 0 else 'b' if 0 else 'c' }} {{ 1 and 0 or 'z' }} {{ not true or true }} {{ (1 if true else 2) + 3 }} {{ - 3 | abs }} {{ -3 }} {{ +3 }} {{ 2 - -1 }}
{{ "a" 'b' "c" }} {{ '\x41\u00e9\t\'\"\\\q' }} {{ 1_000 }} {{ {'a': {'b': {}}} }} {{ {} }} {{ [[]] }} {{ (1,) }} {{ () }} {{ 1, 2 }}
{{ range(5) | list }} {{ range(1, 10, 3) | list }} {{ range(5, 0, -2) | list }} {{ dict(a=1, b='c') }} {{ [1,2] + [3] }} {{ none }} {{ true }} {{ 'a\tb\x01\u200b\xa0é\'"' }} {{ ['a\tb\x01\u200b\xa0é\'"', 'é', '\u2581'] }}
{{ [1, 2, 3] | map('string') | join(',') }} {{ {'a': none, 'b': true, 'c': 1.0, 3: 'i'} | tojson }} {{ 'x' | tojson | tojson }} {{ 100000000000000000 * 10 }} {{ 3.0 * 2 }} {{ 1e3 | int }} {{ 5.5 // 2 }} {{ -5.5 % 2 }} {{ 2 ** -1 }} {{ '%s' | format([1]) }} {{ "a".isdigit() }}{{ "12".isdigit() }} {{ 'a b'.split(' ')[0] }} {{ 'prefix-x'.removeprefix('prefix-') }}
'''

WHITE_SPACE = r"""{#- comment -#}  x {# c #}
{%- if true -%}  y  {%- endif -%}  z
  {% if true %}
    indented
  {% endif %}
  {%+ if true %}keep{% endif %}
  {{ 'print' }}
{% if true +%}
after plus
{% endif %}
{% raw %}{{ not }} {% if %}{% endraw %}
{% generation %}gen{% set inner = 1 %}{% endgeneration %}{{ inner is defined }}
{% for i in 'añb' %}{{ i }}.{% endfor %} {% for k in {'x':1,'y':2} %}{{ k }}{% endfor %} {% for u in undef %}{% endfor %}
{% if [] %}t{% elif 'a' %}e{% else %}f{% endif %} {{ [] | selectattr('x') and 'truthy' }} {{ 'abc'.upper().lower().title() }} {{ 'abc' | upper | lower }} {{ ('a' ~ 'b') | upper }} {{ 'a' + 'b' | upper }} {{ loop is defined }}"""

OPENINGS = ["{% if true %}", "{%- if true %}", "{% if true -%}", "{%+ if true %}",
            "{% if true +%}", "{%- if true -%}"]
CLOSINGS = ["{% endif %}", "{%- endif %}", "{% endif -%}", "{%+ endif %}", "{%- endif -%}",
            "{% endif +%}"]
BETWEEN = ["a", "\n", "  ", "\t", "\n\n", " b ", "{{ 1 }}", "{{- 2 }}", "{{ 3 -}}", "{# c #}",
           "{#- c #}", "{# c -#}", "{#+ c #}", "{% set q = 1 %}", "{%- set q = 1 -%}", "\r\n",
           "{% raw %} r {% endraw %}", "{%- raw -%}  r\n  {%- endraw -%}", "\u00a0",
           "  {% raw %}\n {% endraw %}\n"]


def white_space(rng):
    text, depth = "", 0
    for _ in range(rng.randint(1, 12)):
        kind = rng.random()
        if kind < 0.2:
            text += rng.choice(OPENINGS)
            depth += 1
        elif kind < 0.4 and depth:
            text += rng.choice(CLOSINGS)
            depth -= 1
        else:
            text += rng.choice(BETWEEN)
    return text + "".join(rng.choice(CLOSINGS) for _ in range(depth))


def snippets(rng):
    yield from LINES.strip().split("\n")
    yield WHITE_SPACE
    for _ in range(300):
        yield white_space(rng)
