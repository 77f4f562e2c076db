#!/usr/bin/env python3
"""Writes traces/sessions.jsonl.gz: a made-up trace with more blocks than a hit-rate curve samples.

Chat sessions below one of three system prompts, in Mooncake's format. Each turn sends all that came
before and a few blocks more; some sessions go on at once, some much later, most stay short. A block
is its id and all before it: the first id of a turn is the turn's own, the rest count, which packs
well. The same seed gives the same trace.

    python make_session_trace.py
"""

import gzip
import json
import pathlib
import random

FILE = pathlib.Path(__file__).parent / "traces" / "sessions.jsonl.gz"
SEED = 8
REQUESTS = 7000
OPEN_SESSIONS = 400
BLOCK_TOKENS = 512
GOES_ON = 0.6


def main():
    draw = random.Random(SEED)
    systems = [[500], [501, 1, 2], [502, 1, 2, 3, 4, 5, 6, 7]]
    different = 0
    sessions = []
    lines = []
    for number in range(REQUESTS):
        if sessions and draw.random() < GOES_ON:
            # Mostly one of the last that spoke.
            at = len(sessions) - 1 - int(len(sessions) * draw.random() ** 3)
            blocks = sessions.pop(at)
        else:
            blocks = draw.choices(systems, weights=(6, 3, 1))[0]
        fresh = 1 + min(int(draw.expovariate(1 / 16)), 200)
        blocks = blocks + [1000 + number, *range(1, fresh)]
        different += fresh
        sessions = (sessions + [blocks])[-OPEN_SESSIONS:]
        lines.append(
            {
                "timestamp": 100 * number,
                "input_length": len(blocks) * BLOCK_TOKENS,
                "output_length": 1,
                "hash_ids": blocks,
            }
        )
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    FILE.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(len(lines), "requests,", different, "blocks below system prompts,", FILE.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
