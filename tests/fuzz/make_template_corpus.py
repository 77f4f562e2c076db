#!/usr/bin/env python3
"""Writes corpus/template: the snippets of tests/data/chat_expressions.py, one a file, and a few
templates with a conversation of their own behind a zero byte. The templates in tests/data are
seeds too.

    tests/fuzz/make_template_corpus.py
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "data"))

from chat_expressions import LINES, WHITE_SPACE

FOLDER = HERE / "corpus" / "template"
LOOP = "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}</s>{% endfor %}"
CONVERSATIONS = [
    '[{"role": "user", "content": "<s>a</s>"}]',
    '[{"role": "<s>", "content": [{"type": "text", "text": "x"}, {"type": "image"}]}]',
    '[{"role": "developer", "content": null}, {"role": "assistant", "reasoning": "hm"}]',
    '[{"role": 3}]',
    "[",
]

FOLDER.mkdir(parents=True, exist_ok=True)
for number, line in enumerate(LINES.strip().split("\n") + [WHITE_SPACE]):
    (FOLDER / f"snippet_{number:02}").write_text(line, encoding="utf-8")
for number, conversation in enumerate(CONVERSATIONS):
    (FOLDER / f"conversation_{number}").write_text(LOOP + "\0" + conversation, encoding="utf-8")
