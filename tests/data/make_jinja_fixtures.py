#!/usr/bin/env python3
"""Writes jinja/expressions.json: what Jinja2, set up as Hugging Face transformers does, makes of
every filter, method, test and operator that Pagoda's interpreter has, with values of many kinds.
`text` is null where Jinja2 fails.

  pip install jinja2; python tests/data/make_jinja_fixtures.py
"""

import itertools
import json
import os

import jinja2
import jinja2.ext
import jinja2.sandbox

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jinja/expressions.json")

TEXTS = [
    "", "a", "abc", " a b  c ", "a,b,,c", ",", "aaa", "\u00a0a\u3000 b\u2003", "it's 3d-x (y z",
    "hELLO wORLD\u2028x", "\u0391\u03a3 \u03a3 \u03a3\u03a3 \u0391'\u03a3. \u0391\u03a3\u0392",
    "\u01c6\u01c5 \u00df \ufb01x \u0130I \u0149", "\u4e2da \u10d0\u1c90 \u02b0\u03a3", "x\r\ny\n\nz\r",
    "a\x0b", "a\x0bb\x1c", "\n", "l1\nl2", "1_000", " 12 ", "+7", "-0", "1__0", "_1", "+-5", "4.7",
    "1_0.5e1_0", ".5", "5.", "e5", "1e5", "0x1f", "inf", "-Infinity", "nan", "nan(1)", "1e400",
    "1e-400", "\u0663\u0664", "\u00b2", "9007199254740993", " 9007199254740993", "-9223372036854775808",
    "9223372036854775808", "%s|%d", "%%", "{}{0}", "{1}{0}", "{{}}", "\x7f\u00ad\U0001f600\ue000'\"",
]
OTHERS = [
    "0", "1", "-7", "true", "false", "none", "u", "2.5", "-0.0", "1e300", "1.0", "[]", "[3, 1, 2]",
    "['b', 'A', 'c']", "[1, 1.0, true]", "[[2], [1]]", "(1, 2)", "()", "{}", "{'b': 1, 'a': 2}",
    "{1: 'x', 'k': none}", "[none]", "[{'a': 2}, {'a': 1}]", "[{'a': 2, 'b': 2}, {'a': 1}, {'a': 2, 'b': 1}]", "[none, none]",
    "9007199254740993",
]
NUMBERS = ["0", "1", "2", "-1", "3", "-7", "10", "true", "0.1", "1.0", "-2.5", "0.0", "1e300", "0.5",
           "9007199254740993", "9007199254740992.0", "(-9223372036854775807 - 1)", "'nan'|float"]

FILTERS = {
    "abs": [""], "capitalize": [""], "count": [""], "default": ["('z')", "('z', true)"],
    "dictsort": ["", "(true)", "(false, 'value')", "(reverse=true)"], "first": [""],
    "float": ["", "(9)"], "format": ["", "(1)", "('x', 2)"],
    "indent": ["", "(2)", "('> ', true)", "(1, blank=true)", "(1, true, true)"], "int": ["", "(9)"],
    "items": ["|list"], "join": ["", "('-')", "(1)", "('-', 'a')"], "last": [""], "length": [""],
    "list": [""], "lower": [""], "map": ["('upper')|list", "(attribute='a')|list", "('int')|list",
                                         "(attribute='a', default=3)|list"],
    "max": ["", "(true)", "(attribute='a')"], "min": ["", "(true)"],
    "reject": ["|list", "('none')|list"], "rejectattr": ["('a')|list"],
    "replace": ["('a', 'bb')", "('', '-')", "('', '-', 2)", "('a', '', 1)", "(1, 2)"],
    "reverse": ["|list"], "select": ["|list", "('odd')|list", "('==', 1)|list"],
    "selectattr": ["('a')|list", "('a', '>', 1)|list"], "safe": [""],
    "sort": ["", "(true)", "(case_sensitive=true)", "(attribute='a')", "(attribute='a,b')"], "string": [""],
    "sum": ["", "(start=1)", "('a')"], "title": [""],
    "tojson": ["", "(true)", "(indent=1)", "(indent='ab')", "(indent=-1)", "(sort_keys=true)",
               "(separators=(',', ':'))"],
    "trim": ["", "('a ')", "('\u4e2d\u0391c')"], "unique": ["|list"], "upper": [""],
}
METHODS = {
    "capitalize": ["()"], "count": ["('a')", "('aa')", "('')"], "endswith": ["('c')", "(('x', 'z\\r'))"],
    "find": ["('b')", "('')", "('\u03a3')"], "format": ["(1, 2)", "()", "(a=1)"], "isalpha": ["()"],
    "isdigit": ["()"], "isspace": ["()"], "join": ["(['x', 'y'])", "('xyz')", "([1])"],
    "lower": ["()"], "lstrip": ["()", "('a ')"], "removeprefix": ["('a')"], "removesuffix": ["('c')"],
    "replace": ["('a', 'bb')", "('', '-')", "('', '-', 2)", "('a', 'b', 0)"], "rfind": ["('b')", "('')"],
    "rsplit": ["()", "(',')", "(none, 1)", "(none, 0)", "(',', 1)", "(' ', 2)", "('aa')"],
    "rstrip": ["()", "('c\\r')"],
    "split": ["()", "(',')", "(none, 1)", "(none, 0)", "(none, 2)", "(',', 1)", "(',', 0)", "(' ', 2)",
              "('aa')", "(sep=',', maxsplit=1)"],
    "splitlines": ["()", "(true)", "(keepends=false)"],
    "startswith": ["('a')", "('')", "(('x', 'a'))", "(['a'])"], "strip": ["()", "('a ')", "('\u3000\u00a0')"],
    "title": ["()"], "upper": ["()"],
}
DICT_METHODS = {"copy": ["()"], "get": ["('a')", "('q')", "('q', 7)", "(1)", "(1.0)", "(true)"],
                "items": ["()|list"], "keys": ["()|list"], "values": ["()|list"]}
LIST_METHODS = {"count": ["(1)", "('b')"], "index": ["(1)"]}
TESTS = ["boolean", "callable", "defined", "divisibleby 3", "divisibleby(-1)", "even", "false", "float",
         "integer", "iterable", "lower", "mapping", "none", "number", "odd", "sequence", "string",
         "true", "undefined", "upper", "in [1, 'a', none]", "eq 1", "ne 'a'", "lt 2", "sameas true",
         "sameas none", "sameas false", "sameas 1", "sameas 'a'", "sameas []"]
SLICES = ["[0]", "[-1]", "[5]", "[1:]", "[:-1]", "[::2]", "[::-1]", "[2:0:-1]", "[-100:100:3]",
          "[100:-100:-3]", "[1:1]", "['a']", "[true]", "[::-2]"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in"]
SIGNS = ["-", "+", "not "]


def sources():
    texts = [json.dumps(text, ensure_ascii=False) for text in TEXTS]
    for subject in texts + OTHERS:
        for table, mark in ((FILTERS, "|"), (METHODS, ".")):
            if mark == "." and subject in OTHERS:
                continue
            for name, tails in table.items():
                for tail in tails:
                    yield f"({subject}){mark}{name}{tail}"
        for test in TESTS:
            yield f"({subject}) is {test}"
        for part in SLICES:
            yield f"({subject}){part}"
        for sign in SIGNS:
            yield f"{sign}({subject})"
    for subject in OTHERS:
        table = DICT_METHODS if subject.startswith("{") else LIST_METHODS
        for name, tails in table.items():
            for tail in tails:
                yield f"({subject}).{name}{tail}"
    values = NUMBERS + OTHERS[11:21] + texts[:4] + ["none", "u"]
    for left, right in itertools.product(values, values):
        # Jinja2 writes a constant NaN into the code it makes as the name of a variable.
        if "u" in (left, right) and "nan" in left + right:
            continue
        huge = [each for each in (left, right) if "90071" in each or "92233" in each]
        for operator in OPERATORS:
            # Python has the memory and the patience.
            if not (huge and operator in ("**", "*")):
                yield f"({left}) {operator} ({right})"
    for left, right in itertools.product(["l", "[1]", "{}", "none", "true", "n", "m"], repeat=2):
        yield f"({left}) is sameas ({right})"


def main():
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
    environment.filters["tojson"] = lambda x, ensure_ascii=False, indent=None, separators=None, \
        sort_keys=False: json.dumps(x, ensure_ascii=ensure_ascii, indent=indent,
                                    separators=separators, sort_keys=sort_keys)
    rows = []
    for source in dict.fromkeys(sources()):
        template = ("{% set l = [1] %}{% set m = l %}{% set n = namespace() %}{{ " + source + " }}"
                    if "sameas (" in source and "is sameas (" in source else "{{ " + source + " }}")
        try:
            text = environment.from_string(template).render()
        except Exception:
            text = None
        if text is not None and (" object at 0x" in text or "<" in text and "bound" in text
                                 or len(text) > 2000):
            continue
        rows.append([template, text])
    with open(FILE, "w", encoding="ascii") as stream:
        stream.write("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    print(len(rows), "rows,", sum(text is None for _, text in rows), "that fail")


if __name__ == "__main__":
    main()
