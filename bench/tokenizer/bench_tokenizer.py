#!/usr/bin/env python3
"""Pagoda's tokenizer against Hugging Face `tokenizers`, one thread each, in one run.

  python bench/tokenizer/bench_tokenizer.py --bench build/tokenizer_bench --model MODEL.gguf \
      [--file tests/data/text/wikitext2-test.txt] [--rounds 5]

Both encode the same file as one document with the same vocabulary; rounds alternate between them.
Fails when the ids differ. Needs `pip install tokenizers gguf`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tests", "data"))

from hf_tokenizer import byte_level_tokenizer  # noqa: E402


def digest_of(ids):
    value = 0xCBF29CE484222325
    for token in ids:
        for byte in token.to_bytes(4, "little"):
            value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    root = os.path.join(os.path.dirname(__file__), "..", "..")
    parser.add_argument("--bench", required=True, help="the tokenizer_bench program")
    parser.add_argument("--model", required=True, help="a GGUF whose pre-tokenizer is smollm")
    parser.add_argument("--file", default=os.path.join(root, "tests/data/text/wikitext2-test.txt"))
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()

    with open(arguments.file, encoding="utf-8", newline="") as stream:
        text = stream.read()
    peer = byte_level_tokenizer(arguments.model)
    size = len(text.encode("utf-8"))

    ours, theirs = [], []
    for _ in range(arguments.rounds):
        command = [arguments.bench, arguments.model, arguments.file, "1"]
        report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        ours.append(report["seconds"][0])
        start = time.perf_counter()
        ids = peer.encode(text, add_special_tokens=False).ids
        theirs.append(time.perf_counter() - start)
        if len(ids) != report["tokens"] or digest_of(ids) != report["digest"]:
            sys.exit("error: the ids differ")

    def rate(seconds):
        return size / seconds * 1e-6

    result = {
        "bytes": size,
        "tokens": len(ids),
        "same_ids": True,
        "rounds": arguments.rounds,
        "pagoda_mb_per_second": {"median": rate(statistics.median(ours)), "best": rate(min(ours))},
        "hf_mb_per_second": {"median": rate(statistics.median(theirs)), "best": rate(min(theirs))},
        "ratio_of_medians": statistics.median(theirs) / statistics.median(ours),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
