#!/usr/bin/env python3
"""Writes block_names/blocks.json and block_names/chains.json: names of random blocks.

A name is what vLLM's `sha256_cbor` makes of a block: hashlib's SHA-256 of what `cbor2` writes for
(parent, tokens, extra keys). Nothing of Pagoda is used. One case a line; names are hexadecimal.

    python make_block_names.py [DIRECTORY]      (default: the folder of this script)

Needs cbor2. Instant.
"""

import hashlib
import json
import pathlib
import random
import sys

import cbor2

# Texts by length in bytes around every change of CBOR's head, up to the longest that Pagoda takes.
LENGTHS = [1, 23, 24, 255, 256, 512]
# 23 characters but 32 bytes, on the two sides of a change: what counts is bytes.
WIDE_TEXT = "Größe-租户-🦙-abcdefghijkl"
# Token ids at both sides of every change of width.
EDGES = [0, 23, 24, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1]


def sha256_cbor(value):
    return hashlib.sha256(cbor2.dumps(value, canonical=True)).digest()


def extra_keys(adapter, salt):
    return tuple(key for key in (adapter, salt) if key) or None


def block_name(parent, tokens, adapter, salt):
    return sha256_cbor((parent, tuple(tokens), extra_keys(adapter, salt)))


def random_text(rng, length):
    return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz0123456789-") for _ in range(length))


def random_tokens(rng, count):
    """Of all widths: first a width, then a token."""
    return [rng.randrange(rng.choice([24, 256, 65536, 128256, 2**32])) for _ in range(count)]


def block_case(rng, tokens, adapter="", salt="", repeat=1):
    parent = rng.randbytes(32)
    name = block_name(parent, tokens * repeat, adapter, salt)
    return {"parent": parent.hex(), "tokens": tokens, "repeat": repeat, "adapter": adapter,
            "salt": salt, "name": name.hex(),
            "event_hash": int.from_bytes(name, "big") & (2**64 - 1)}


def block_cases(rng):
    for token in EDGES:
        yield block_case(rng, [token])
    for count in (1, 16, 17, 23, 24, 255, 256):
        yield block_case(rng, random_tokens(rng, count))
    for length in LENGTHS:
        text = random_text(rng, length)
        other = random_text(rng, LENGTHS[-1 - LENGTHS.index(length)])
        yield block_case(rng, random_tokens(rng, 16), adapter=text)
        yield block_case(rng, random_tokens(rng, 17), salt=text)
        yield block_case(rng, random_tokens(rng, 16), adapter=text, salt=other)
    yield block_case(rng, random_tokens(rng, 16), adapter=WIDE_TEXT, salt=WIDE_TEXT[::-1])
    yield block_case(rng, random_tokens(rng, 16), repeat=256)
    # The longest input there is: 4096 tokens of 5 bytes, adapter and salt of 512.
    yield block_case(rng, [2**32 - 1], repeat=4096, adapter=random_text(rng, 512),
                     salt=random_text(rng, 512))


def chain_case(rng, tokens, block_tokens, adapter="", salt=""):
    seed = rng.randbytes(32)
    parent, names = seed, []
    for start in range(0, len(tokens) - block_tokens + 1, block_tokens):
        block = tokens[start:start + block_tokens]
        parent = block_name(parent, block, adapter, salt if start == 0 else "")
        names.append(parent.hex())
    return {"seed": seed.hex(), "tokens": tokens, "block_tokens": block_tokens, "adapter": adapter,
            "salt": salt, "names": names}


def chain_cases(rng):
    yield chain_case(rng, random_tokens(rng, 15), 16)
    yield chain_case(rng, random_tokens(rng, 16), 16)
    yield chain_case(rng, random_tokens(rng, 100), 16)
    yield chain_case(rng, random_tokens(rng, 5), 1, adapter="translate")
    yield chain_case(rng, random_tokens(rng, 51), 17, salt="tenant-a")
    yield chain_case(rng, random_tokens(rng, 80), 16, adapter="translate", salt="tenant-a")
    yield chain_case(rng, random_tokens(rng, 600), 256, adapter=WIDE_TEXT, salt="tenant-b")


def write(path, cases):
    lines = (json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    folder = folder / "block_names"
    folder.mkdir(exist_ok=True)
    write(folder / "blocks.json", block_cases(random.Random(1)))
    write(folder / "chains.json", chain_cases(random.Random(2)))


if __name__ == "__main__":
    main()
