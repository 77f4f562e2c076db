#!/usr/bin/env python3
"""Writes text/nfc.json: texts, and what Python's unicodedata makes of them in NFC.

Every character with a canonical decomposition stands in it: as it is, decomposed, and decomposed with its marks
turned round and more behind it; then texts of letters and marks by chance. Characters that Unicode 3.2 did not have
are left out, so that every library in use knows them all.

    python make_nfc_fixtures.py      (needs nothing)
"""

import json
import pathlib
import random
import unicodedata

OLD = unicodedata.ucd_3_2_0


def known(character):
    return OLD.category(character) != "Cn"


def main():
    rng = random.Random(15)
    decomposed = [chr(code) for code in range(0x110000) if not 0xAC00 <= code < 0xD7A4
                  and unicodedata.normalize("NFD", chr(code)) != chr(code) and known(chr(code))]
    hangul = [chr(code) for code in rng.sample(range(0xAC00, 0xD7A4), 200)]
    marks = [chr(code) for code in range(0x300, 0x3100) if unicodedata.combining(chr(code)) and known(chr(code))]
    texts = []
    for character in decomposed + hangul:
        apart = unicodedata.normalize("NFD", character)
        texts += [character, apart[0] + apart[:0:-1] + rng.choice(marks)]
    parts = decomposed + hangul + marks + list("abcAZ 19.\n\u4e2d\u6587\u3042\u1100\u1161\u11a8\U0001f600\u00e9")
    texts += ["".join(rng.choices(parts, k=rng.randint(2, 16))) for _ in range(600)]
    texts += ["plain", "", "e" + "\u0301" * 30 + "\u0323" * 30]
    texts = sorted(set(texts))
    rows = [[text, unicodedata.normalize("NFC", text)] for text in texts]
    (pathlib.Path(__file__).parent / "text" / "nfc.json").write_text(
        json.dumps(rows, ensure_ascii=True, separators=(",", ":")).replace("],[", "],\n[") + "\n")
    print(f"{len(rows)} texts")


if __name__ == "__main__":
    main()
