#!/usr/bin/env python3
"""Writes text/smollm2_ids.json: texts and their ids by Hugging Face `tokenizers` with the
vocabulary and merges of the default model's GGUF.

  pip install tokenizers gguf; python tests/data/make_smollm2_ids.py MODEL.gguf
"""

import json
import os
import sys

from hf_tokenizer import byte_level_tokenizer
from make_pretokenizer_fixtures import texts

FOLDER = os.path.dirname(os.path.abspath(__file__))


def main():
    tokenizer = byte_level_tokenizer(sys.argv[1])
    with open(os.path.join(FOLDER, "text/wikitext2-test.txt"), encoding="utf-8", newline="") as f:
        wikitext = f.read()
    chosen = texts()[:200] + [wikitext[at:at + 1500] for at in (0, 200_000, 700_000, 1_000_000)]
    entries = [{"text": text, "ids": tokenizer.encode(text).ids} for text in chosen]
    with open(os.path.join(FOLDER, "text/smollm2_ids.json"), "w", encoding="ascii") as stream:
        stream.write("[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n")


if __name__ == "__main__":
    main()
