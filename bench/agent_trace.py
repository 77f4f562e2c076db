#!/usr/bin/env python3
"""A made-up trace of coding agents in Mooncake's format, for `pagoda replay`.

300 sessions begin over eight hours. Each turn sends all that came before and one to a few blocks of
512 tokens more; the next follows after 17 seconds in the middle, now and then much later; a context
that has grown too long is replaced by a summary. The same seed gives the same trace.

    bench/agent_trace.py > agent.jsonl
"""

import json
import math
import random

SESSIONS = 300
HOURS = 8
SYSTEM_BLOCKS = 20


def main():
    draw = random.Random(5)
    ids = iter(range(1, 10**9))

    def fresh(count):
        return [next(ids) for _ in range(count)]

    system = fresh(SYSTEM_BLOCKS)
    requests = []
    for _ in range(SESSIONS):
        seconds = draw.uniform(0, HOURS * 3600)
        context = list(system)
        turns = min(max(5, int(draw.lognormvariate(math.log(150), 0.9))), 900)
        for _ in range(turns):
            context += fresh(1 + int(draw.expovariate(0.8)))
            requests.append((seconds, context + fresh(1)))  # the last block is partly filled
            seconds += draw.lognormvariate(math.log(17), 1.55)
            if len(context) > draw.uniform(300, 500):
                context = system + fresh(20)
    requests.sort(key=lambda request: request[0])
    for seconds, blocks in requests:
        print(json.dumps({
            "timestamp": int(seconds * 1000),
            "input_length": len(blocks) * 512,
            "output_length": 1,
            "hash_ids": blocks,
        }))


if __name__ == "__main__":
    main()
