#!/usr/bin/env python3
"""Writes src/text/jinja/unicode_tables.h and the tables it declares: what Python's str methods know
of characters, asked of Python itself.

    tools/make_unicode_tables.py && clang-format -i src/text/jinja/unicode_*
"""
import pathlib
import unicodedata

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "src/text/jinja"
CODES = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
HEAD = f"""// Made by tools/make_unicode_tables.py: Unicode {unicodedata.unidata_version}.
#include "text/jinja/unicode_tables.h"

namespace pagoda::text::jinja {{

"""
TAIL = "\n}  // namespace pagoda::text::jinja\n"


# A sigma is final behind a letter with a case; what may stand between the two is ignorable.
def is_ignorable(c):
    return "ς" in ("a" + chr(c) + "Σ").lower() and "ς" not in ("1" + chr(c) + "Σ").lower()


def array(kind, name, rows):
    body = ", ".join(rows)
    return f"const std::array<{kind}, {len(rows)}> {name} = {{{{{body}}}}};\n"


def borders(name, holds):
    """Where the class begins and ends by turns."""
    rows, inside = [], False
    for c in range(0x110000):
        now = not 0xD800 <= c <= 0xDFFF and holds(c)
        if now != inside:
            rows.append(f"{c:#x}")
            inside = now
    if inside:
        rows.append("0x110000")
    return array("char32_t", name, rows)


def deltas(name, change):
    """Runs of characters, one or two apart, that change by the same distance."""
    rows = []
    for c in CODES:
        to = change(chr(c))
        if len(to) != 1 or ord(to) == c:
            continue
        delta = ord(to) - c
        if rows and rows[-1][3] == delta:
            first, last, stride, _ = rows[-1]
            if c - last in (1, 2) and (first == last or c - last == stride):
                rows[-1] = (first, c, c - last, delta)
                continue
        rows.append((c, c, 1, delta))
    return array("CaseRun", name, [f"{{{f:#x}, {l:#x}, {s}, {d}}}" for f, l, s, d in rows])


def longer(name, change):
    rows = []
    for c in CODES:
        to = change(chr(c))
        if len(to) > 1:
            codes = [f"{ord(x):#x}" for x in to] + ["0"] * (3 - len(to))
            rows.append(f"{{{c:#x}, {{{', '.join(codes)}}}}}")
    return array("LongCase", name, rows)


DECLARED = []


def write(name, parts):
    (FOLDER / name).write_text(HEAD + "\n".join(parts) + TAIL, encoding="ascii")
    DECLARED.extend("extern " + part.split(" = ")[0] + ";" for part in parts)


zeros = [c for c in CODES if unicodedata.decimal(chr(c), None) == 0]
assert all(unicodedata.decimal(chr(z + i)) == i for z in zeros for i in range(10))
write("unicode_classes.cc", [
    borders("kLetters", lambda c: chr(c).isalpha()),
    borders("kDigits", lambda c: chr(c).isdigit()),
    borders("kPrintable", lambda c: chr(c).isprintable()),
    array("char32_t", "kDecimalZeros", [f"{z:#x}" for z in zeros]),
])
write("unicode_letters.cc", [
    borders("kUpperCase", lambda c: chr(c).isupper()),
    borders("kLowerCase", lambda c: chr(c).islower()),
    borders("kTitleCase", lambda c: chr(c).istitle() and not chr(c).isupper()),
    borders("kCaseIgnorable", is_ignorable),
])
write("unicode_cases.cc", [
    deltas("kToUpper", str.upper), deltas("kToLower", str.lower), deltas("kToTitle", str.title),
    longer("kToLongUpper", str.upper), longer("kToLongLower", str.lower),
    longer("kToLongTitle", str.title),
])
(FOLDER / "unicode_tables.h").write_text(f"""// Made by tools/make_unicode_tables.py.
#pragma once

#include <array>
#include <cstdint>

namespace pagoda::text::jinja {{

// Every second character from `first` to `last` where `stride` is 2.
struct CaseRun {{
  char32_t first;
  char32_t last;
  std::uint32_t stride;
  std::int32_t delta;
}};

// A character whose other case is two or three; a zero stands for none.
struct LongCase {{
  char32_t code;
  std::array<char32_t, 3> to;
}};

// Classes of characters are the places where they begin and end by turns.
{chr(10).join(DECLARED)}

}}  // namespace pagoda::text::jinja
""", encoding="ascii")
