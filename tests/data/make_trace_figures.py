#!/usr/bin/env python3
"""Writes traces/conversation_1000.json: hit rates of the trace beside it, computed the plain way.

Blocks are told apart by their whole beginning (a tuple of ids). Every cache is the simplest thing
that can be right, linear searches included; nothing of Pagoda is used.

    lru       one ordered dict; a request touches its blocks from the tail to the head
    fifo      of the blocks that nothing cached goes on from and the request does not have, the one
              that came first leaves
    belady    after a request, of what was there and what it had, the blocks used again soonest stay
    infinite  everything stays

    python make_trace_figures.py [TRACE]

With TRACE (conversation_trace.jsonl of Mooncake, gzip) the excerpt is cut anew from it. A minute.
"""

import bisect
import collections
import gzip
import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent / "traces"
EXCERPT = FOLDER / "conversation_1000.jsonl.gz"
LINES = 1000
BLOCK_TOKENS = 512
PERCENTS = [1, 2, 5, 10, 25, 50]


def cut(trace):
    with gzip.open(trace, "rt") as lines:
        head = "".join(line for line, _ in zip(lines, range(LINES)))
    EXCERPT.write_bytes(gzip.compress(head.encode(), 9, mtime=0))


def read():
    """Per request: its blocks, and the tokens of each."""
    requests = []
    for line in gzip.open(EXCERPT, "rt"):
        request = json.loads(line)
        ids, length = request["hash_ids"], request["input_length"]
        blocks = [tuple(ids[: i + 1]) for i in range(len(ids))]
        tokens = [max(0, min(length - i * BLOCK_TOKENS, BLOCK_TOKENS)) for i in range(len(ids))]
        requests.append((blocks, tokens))
    return requests


class Lru:
    def __init__(self, capacity, _):
        self.capacity = capacity
        self.cached = collections.OrderedDict()

    def serve(self, _, blocks):
        for block in reversed(blocks):
            self.cached[block] = True
            self.cached.move_to_end(block)
            if len(self.cached) > self.capacity:
                self.cached.popitem(last=False)


class Fifo:
    def __init__(self, capacity, _):
        self.capacity = capacity
        self.cached = {}  # in order of arrival
        self.followers = collections.Counter()

    def serve(self, _, blocks):
        kept = blocks[: self.capacity]
        fresh = [block for block in kept if block not in self.cached]
        mine = set(kept)
        while len(self.cached) + len(fresh) > self.capacity:
            victim = next(b for b in self.cached if b not in mine and self.followers[b] == 0)
            del self.cached[victim]
            self.followers[victim[:-1]] -= 1
        for block in fresh:
            self.cached[block] = True
            self.followers[block[:-1]] += 1


class Belady:
    def __init__(self, capacity, requests):
        self.capacity = capacity
        self.cached = set()
        self.uses = collections.defaultdict(list)
        for number, (blocks, _) in enumerate(requests):
            for block in blocks:
                self.uses[block].append(number)

    def next_use(self, block, number):
        uses = self.uses[block]
        at = bisect.bisect_right(uses, number)
        return uses[at] if at < len(uses) else None

    def serve(self, number, blocks):
        candidates = []
        for block in self.cached | set(blocks):
            use = self.next_use(block, number)
            if use is not None:
                candidates.append((use, len(block), block))
        self.cached = {block for _, _, block in sorted(candidates)[: self.capacity]}


class Infinite:
    def __init__(self, *_):
        self.cached = set()

    def serve(self, _, blocks):
        self.cached.update(blocks)


def rates(make, capacity, requests):
    cache = make(capacity, requests)
    blocks_hit = tokens_hit = 0
    for number, (blocks, tokens) in enumerate(requests):
        for block, weight in zip(blocks, tokens):
            if block not in cache.cached:
                break
            blocks_hit += 1
            tokens_hit += weight
        cache.serve(number, blocks)
    return {
        "blocks_hit_rate": blocks_hit / sum(len(blocks) for blocks, _ in requests),
        "tokens_hit_rate": tokens_hit / sum(sum(tokens) for _, tokens in requests),
    }


def main():
    if len(sys.argv) > 1:
        cut(sys.argv[1])
    requests = read()
    unique = len({block for blocks, _ in requests for block in blocks})
    results = []
    for name, make in (("lru", Lru), ("fifo", Fifo), ("belady", Belady)):
        for percent in PERCENTS:
            capacity = max(1, unique * percent // 100)
            result = {"policy": name, "capacity": f"{percent}%", "capacity_blocks": capacity}
            results.append(result | rates(make, capacity, requests))
            print(results[-1])
    figures = {
        "results": results,
        "infinite": rates(Infinite, 0, requests),
        "requests": len(requests),
        "unique_blocks": unique,
    }
    (FOLDER / "conversation_1000.json").write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
