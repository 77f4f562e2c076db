#!/usr/bin/env python3
"""Writes pretokenizer/splits.json: where each family of models cuts a set of nasty texts.

The engine is Hugging Face `tokenizers` (Oniguruma) and the patterns are those of the models' own
tokenizer.json files, step by step, so that Pagoda's patterns, which are fused and rewritten for
PCRE2, are checked by something that shares neither. `pip install tokenizers regex`; run from
anywhere. A second engine, the `regex` module, must agree where a family is one pattern.
"""

import json
import os
import random

import regex
from tokenizers import Regex
from tokenizers.pre_tokenizers import ByteLevel, Digits, Punctuation, Sequence, Split

from hf_regexes import C, CJK_AND_BELOW, CL100K, DEEPSEEK_LLM, DEEPSEEK_V3, O200K, PREFIX, QWEN2, TEKKEN, WS

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
QWEN35 = C + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + WS
UPPER_NOT_HAN = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
LOWER_NOT_HAN = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
KIMI = (r"[\p{Han}]+|" f"{PREFIX}{UPPER_NOT_HAN}*{LOWER_NOT_HAN}+{C}?"
        f"|{PREFIX}{UPPER_NOT_HAN}+{LOWER_NOT_HAN}*{C}?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + WS)
SENTENCE = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
BAILING = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*"
           r"|\s*[\r\n]|\s+(?!\S)|\s+")
SEED = C + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|" + WS
EXAONE_MOE = (C + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}"
              r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+")
MINICPM5 = C + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|" + WS


def cut(pattern):
    return Split(Regex(pattern), "isolated")


BYTE_LEVEL = ByteLevel(add_prefix_space=False, use_regex=True)

# One name of each family, and the steps of its published pre-tokenizer.
FAMILIES = {
    "gpt-2": [BYTE_LEVEL],
    "llama-bpe": [cut(CL100K)],
    "qwen2": [cut(QWEN2)],
    "qwen35": [cut(QWEN35)],
    "tekken": [cut(TEKKEN)],
    "gpt-4o": [cut(O200K)],
    "kimi-k2": [cut(KIMI)],
    "smollm": [Digits(individual_digits=True), BYTE_LEVEL],
    "falcon": [Punctuation("contiguous"), cut(GPT2), cut("[0-9][0-9][0-9]")],
    "deepseek-llm": [*map(cut, DEEPSEEK_LLM), Digits(individual_digits=False)],
    "deepseek-v2": [*map(cut, DEEPSEEK_LLM), Digits(individual_digits=True)],
    "deepseek-coder": [cut("[\r\n]"), cut(r"\s?\p{L}+"), cut(r"\s?\p{P}+"), cut(CJK_AND_BELOW),
                       Digits(individual_digits=True)],
    "deepseek-v3": [*map(cut, DEEPSEEK_V3)],
    "bloom": [cut(SENTENCE)],
    "viking": [cut(SENTENCE), Digits(individual_digits=True)],
    "gemma4": [cut(r"[^\n]+|[\n]+")],
    "default": [cut(r"[\p{P}\$\+<=>\^~\|]+"), cut(GPT2), cut(r"\p{N}+"), cut("[0-9][0-9][0-9]")],
    "bailingmoe": [cut(BAILING)],
    "seed-coder": [cut(SEED)],
    "exaone-moe": [cut(EXAONE_MOE)],
    "minicpm5": [cut(r"\p{N}{1,3}"), cut(MINICPM5)],
    "laguna": [cut(r"[^\n]+|[\n]+"), cut(QWEN2)],
    "whole-text": [cut(r"(?m).+")],
    "marked-words": [Split("\u2581", "merged_with_next")],
}
# Those one pattern can say, for the second engine.
SECOND_ENGINE = {"gpt-2": GPT2, "llama-bpe": CL100K, "qwen2": QWEN2, "qwen35": QWEN35,
                 "tekken": TEKKEN, "gpt-4o": O200K, "kimi-k2": KIMI, "bloom": SENTENCE,
                 "bailingmoe": BAILING, "seed-coder": SEED, "exaone-moe": EXAONE_MOE}

CHOSEN = [
    "", " ", "  ", "   ", "\t", "\n", "\r\n", "\n\n\n", " \n", "\n ", "  \n  \n  ", "a", " a",
    "  a", "a ", "a  ", "a  b", "a   b", "\ta", "\t\ta", "a\tb", "a \tb", "a\u00a0b", "\u00a0",
    "\u3000\u3000a", "a\u180eb", "\u180e \u180e", "a\u0085b", "\u2028x\u2029",
    "\x1c\x1d\x1e\x1f a", "Hello, world!", " Hello  World ",
    "I'm I'M we'll WE'LL he's HE'S you'Re 'Tis isn't 'd'D 'x", "it'\u017f x'\u017f",
    "don\u2019t", "''s'", "' s", "a's b'S", "1's", "\u4e2d's", "HELLOworld", "helloWORLD",
    "HelloWorld iPhone McDonald XMLHttpRequest", "A", "Aa", "aA", "\u01c5a", "\u01c5A", "1",
    "12", "123", "1234", "1234567890", " 1", "  12", "a1b22c333d4444", "1 2  3   4",
    "3.14159 1,000,000 -5 +7", "\u00bd \u00b2\u00b3 \u2167 \u0661\u0662\u0663 \u06f1\u06f2",
    "v1.2.3", "0x1F", "1e-10", "\u4e2d\u6587\u6d4b\u8bd5", " \u4e2d\u6587", "\u4e2d a\u6587b",
    "\u65e5\u672c\u8a9e\u306e\u30c6\u30b9\u30c8\u3067\u3059\u3002",
    "\u3005\u3007\u3021 \u3400\u20000", "\u4e2d\u3001\u6587\uff0c\uff08\u6d4b\uff09",
    "\uac00\ub098\ub2e4 \ub77c\ub9c8", "\u1100\u1161", "\u2e80\u2f00 \u2e80a",
    "\u0915\u093f \u0939\u093f\u0928\u094d\u0926\u0940", "e\u0301 \u0301e",
    "cafe\u0301 caf\u00e9", "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22",
    "\u1780\u17b6\u1793\u17cb",
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629\u060c \u0646\u0639\u0645\u06d4",
    "\u05e9\u05dc\u05d5\u05dd", "\u041f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440",
    "\u0391\u03b8\u03ae\u03bd\u03b1", "\u00df\u1e9e", "\u13a0\uab70", "\ufb00\uff21\uff41",
    "\U00010400\U00010428", "\u2126\u212a\u00b5", "\u02b0\u1d2c", "\U0001f600",
    " \U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea",
    "\u200b\u200c\u200d\ufeff", "a\u200bb", "\u00ad", "\ue000\U000f0000", "...", " ...", "... a",
    "a...b", "!?", "a/b//c", "path/to/file\n", "//\n", "!\r\n\n", "a!\nb", " {\n  }\n", "=>",
    "a==b", "$x + y^2 ~ z|w`", "<|im_start|>", "[INST] x [/INST]",
    "def f(x):\n    return x\n\n\n# end", "\tif (a) {\r\n\t\tb();\r\n\t}\r\n", "a_b __init__",
    "#tag @user", "e-mail x@y.z", "a\n\n  b", "a\n \n b", "\n\n a", " \u3000 a", "a\x00b",
    "\x7f\x80", "(\u00a0)", "\u2026\u3002\uff0c\u3001\u0964", "(a|b)", "\u0964a \u0964",
    "x\u2003y", "A\u0301B\u0301", "\u0301\u0301", "1\u0301", ".\u0301a",
    "\u2581a\u2581\u2581b c\u2581", "\u2581", "\u2581\u2581\u2581", "a\u2581", "\u2581 \n\u2581x",
]
ALPHABET = list(" \t\n\r'sSdDlLtTmMvVeErRaAzZ019.,!?/(|)<>$+^~`_-#") + list(
    "\u00a0\u3000\u180e\u0085\u2028\u200b\u00e9\u00c9\u0301\u017f\u00df\u01c5\u02b0\u0915\u093f"
    "\u4e2d\u6587\u3005\u3007\u3042\u30a2\uac00\u0627\u0661\u00bd\u2167\u2026\u3002\uff0c\u2019"
    "\u0964\u060c"
    "\U0001f600\U00010400\U00010428\u2e80\uff21\u13a0\u0416\u0436\u03a9")


def texts():
    rng = random.Random(20240817)
    made = ["".join(rng.choices(ALPHABET, k=rng.randint(2, 24))) for _ in range(150)]
    # More of what real text has: words, digits and runs of white space side by side.
    parts = ["foo", "Bar", " baz", "QUX", "'s", "'LL", "12", "3456", " ", "  ", "\n", " \n",
             "\t", ".", " ,", "\u4e2d\u6587", "\u3042", "\u00e9", "e\u0301", "\U0001f600", "_",
             "\u00a0", "\uac00"]
    made += ["".join(rng.choices(parts, k=rng.randint(2, 12))) for _ in range(100)]
    return CHOSEN + made


def byte_ends(text, ends):
    return [len(text[:end].encode("utf-8")) for end in ends]


def split_by_tokenizers(steps, text):
    pieces = Sequence(steps).pre_tokenize_str(text) if text else []
    return [end for _, (begin, end) in pieces if end > begin]


def split_by_regex(pattern, text):
    ends, at = [], 0
    for match in regex.finditer(pattern, text, flags=regex.V1):
        if match.start() > at:
            ends.append(match.start())
        ends.append(match.end())
        at = match.end()
    return ends + ([len(text)] if at < len(text) else [])


def main():
    cases = texts()
    result = {"texts": cases, "families": {}}
    for name, steps in FAMILIES.items():
        splits = [split_by_tokenizers(steps, text) for text in cases]
        pattern = SECOND_ENGINE.get(name)
        for text, ends in zip(cases, splits):
            assert sorted(set(ends)) == ends and (not text or ends[-1] == len(text)), (name, text)
            if pattern is not None and split_by_regex(pattern, text) != ends:
                raise SystemExit(f"engines differ: {name} {text!r} {ends}")
        result["families"][name] = [byte_ends(text, ends) for text, ends in zip(cases, splits)]
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pretokenizer")
    with open(os.path.join(folder, "splits.json"), "w", encoding="ascii") as stream:
        json.dump(result, stream, ensure_ascii=True, separators=(",", ":"))
        stream.write("\n")


if __name__ == "__main__":
    main()
