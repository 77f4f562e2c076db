#!/usr/bin/env python3
"""Writes corpus/kv: one run per kind of slices and policy, its decisions drawn at random.

    tests/fuzz/make_kv_corpus.py
"""
import pathlib
import random

FOLDER = pathlib.Path(__file__).parent / "corpus" / "kv"
RUNS = {  # name: (block tokens - 1 and policy, slices and tenants, blocks - 4)
    "full_lru": (3, 0, 20),
    "full_fifo": (128 + 3, 0, 20),
    "window_and_full": (3, 1, 30),
    "two_full_and_window": (1, 2, 40),
    "window_alone": (2, 3, 12),
    "window_of_one": (4, 4, 20),
    "tenants": (3, 130, 40),
    "tenants_small_blocks": (0, 131, 60),
}

FOLDER.mkdir(parents=True, exist_ok=True)
for number, (name, settings) in enumerate(RUNS.items()):
    decisions = random.Random(number).randbytes(600)
    (FOLDER / name).write_bytes(bytes(settings) + decisions)
