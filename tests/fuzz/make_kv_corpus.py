#!/usr/bin/env python3
"""Writes corpus/kv: one run per kind of groups and policy, its decisions drawn at random.

    tests/fuzz/make_kv_corpus.py
"""
import pathlib
import random

FOLDER = pathlib.Path(__file__).parent / "corpus" / "kv"
RUNS = {  # name: (block tokens - 1, policy; groups, tenants; blocks - 4; pages out, no sharing, names)
    "full_lru": (3, 0, 20, 0),
    "full_fifo": (128 + 3, 0, 20, 0),
    "window_and_full": (3, 1, 30, 0),
    "two_full_and_window": (1, 2, 40, 0),
    "window_alone": (2, 3, 12, 0),
    "window_of_one": (4, 4, 20, 0),
    "tenants": (3, 130, 40, 0),
    "tenants_small_blocks": (0, 131, 60, 0),
    "pages_out": (1, 0, 12, 1),
    "pages_out_window_and_full": (1, 1, 20, 1),
    "names_of_tenants": (0, 130, 30, 128 + 1),
    "no_sharing": (2, 1, 20, 4 * 7),
}

FOLDER.mkdir(parents=True, exist_ok=True)
for number, (name, settings) in enumerate(RUNS.items()):
    decisions = random.Random(number).randbytes(600)
    (FOLDER / name).write_bytes(bytes(settings) + decisions)
