#!/usr/bin/env python3
"""Writes dequantise/NAME.bin: rows of quantised blocks and the floats they stand for.

The floats come from the `gguf` package's numpy code where it has the type and otherwise from the
few lines of numpy below; nothing of Pagoda is used. A file is the blocks of one row, back to back,
followed by the row as float32; how many blocks there are follows from the file's size.

    python make_dequantise_fixtures.py [DIRECTORY]      (default: the folder of this script)

Needs gguf, numpy. Seconds.
"""

import pathlib
import sys

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

# Half floats for scales: ordinary ones, the largest, subnormals, zeros. No infinity and no NaN:
# the sign of a NaN that a product makes differs between machines.
SCALES = [0x2E66, 0xA19A, 0x7BFF, 0x83FF, 0x3555, 0x8000, 0x0001, 0x0000, 0x0400, 0xFBFF, 0xBC00]

# name: (elements, bytes, offsets of half floats in a block, blocks)
BLOCKS = {
    "Q4_0": (32, 18, [0], 22),
    "Q4_1": (32, 20, [0, 2], 22),
    "Q5_0": (32, 22, [0], 22),
    "Q5_1": (32, 24, [0, 2], 22),
    "Q8_0": (32, 34, [0], 22),
    "Q2_K": (256, 84, [80, 82], 5),
    "Q3_K": (256, 110, [108], 5),
    "Q4_K": (256, 144, [0, 2], 5),
    "Q5_K": (256, 176, [0, 2], 5),
    "Q6_K": (256, 210, [208], 5),
    "IQ4_NL": (32, 18, [0], 22),
    "IQ4_XS": (256, 136, [0], 5),
    "TQ1_0": (256, 54, [52], 4),
    "TQ2_0": (256, 66, [64], 4),
    "MXFP4": (32, 17, [], 24),
    "NVFP4": (64, 36, [], 16),
    "Q1_0": (128, 18, [0], 8),
    "Q2_0": (64, 18, [0], 12),
}

PLAIN = {
    "F32": np.array([0, -0.0, 1, -1, 1e-45, 3.4e38, np.inf, -np.inf, np.nan, 0.1], np.float32),
    "F64": np.array([0, -0.0, 0.1, 1 / 3, 1e-46, 1e300, -1e300, np.inf, np.nan,
                     1 + 2**-24, 1 + 3 * 2**-24], np.float64),
    "F16": np.array(SCALES + [0x7C00, 0xFC00, 0x7E00, 0x3555], np.uint16),
    "BF16": np.array(SCALES + [0x7F80, 0xFF80, 0x7FC0, 0x3EAB], np.uint16),
    "I8": np.array([0, 1, -1, 127, -128], np.int8),
    "I16": np.array([0, 1, -1, 32767, -32768], np.int16),
    "I32": np.array([0, 1, -1, 2**31 - 1, -2**31, 2**24 + 1, 2**24 + 3], np.int32),
    "I64": np.array([0, 1, -1, 2**63 - 1, -2**63, 2**24 + 1, 2**53 + 1], np.int64),
}


def half_scale(blocks):
    return blocks[:, :2].copy().view(np.float16).astype(np.float32)


def q1_0(blocks):
    bits = np.unpackbits(blocks[:, 2:], axis=1, bitorder="little")
    return np.where(bits == 1, half_scale(blocks), -half_scale(blocks)).astype(np.float32)


def q2_0(blocks):
    bits = np.unpackbits(blocks[:, 2:], axis=1, bitorder="little").reshape(len(blocks), 64, 2)
    codes = bits[:, :, 0] + 2 * bits[:, :, 1]
    return half_scale(blocks) * (codes.astype(np.float32) - np.float32(1))


OWN = {"Q1_0": q1_0, "Q2_0": q2_0}


def random_blocks(rng, name):
    elements, size, scale_offsets, count = BLOCKS[name]
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for position, offset in enumerate(scale_offsets):
        # The second scale walks the list backwards, so that pairs differ.
        scales = [SCALES[(i if position == 0 else -1 - i) % len(SCALES)] for i in range(count)]
        blocks[:, offset:offset + 2] = np.array(scales, "<u2").view(np.uint8).reshape(count, 2)
    if name == "MXFP4":
        blocks[:, 0] = np.array([0, 1, 2, 3, 127, 128, 254, 255] * 3, np.uint8)[:count]
    if name == "NVFP4":
        every = np.r_[0:8, 0x38:0x40, 0x78:0x80, 0x80, 0xFF]
        blocks[:, :4] = np.resize(every, (count, 4)).astype(np.uint8)
    return blocks


def floats_of(name, blocks):
    if name in OWN:
        return OWN[name](blocks)
    return gguf.quants.dequantize(blocks, T[name])


def plain_floats(name, values):
    if name == "BF16":
        return gguf.quants.dequantize(values.view(np.uint8), T.BF16)
    if name == "F16":
        return gguf.quants.dequantize(values, T.F16)
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def main():
    here = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    folder = here / "dequantise"
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20240229)
    for name in BLOCKS:
        elements, size, _, count = BLOCKS[name]
        blocks = random_blocks(rng, name)
        with np.errstate(over="ignore"):
            floats = np.asarray(floats_of(name, blocks), np.float32).reshape(-1)
        assert floats.size == elements * count and not np.isnan(floats).any(), name
        (folder / f"{name}.bin").write_bytes(blocks.tobytes() + floats.tobytes())
    for name, values in PLAIN.items():
        floats = np.asarray(plain_floats(name, values), np.float32).reshape(-1)
        (folder / f"{name}.bin").write_bytes(values.tobytes() + floats.tobytes())


if __name__ == "__main__":
    main()
