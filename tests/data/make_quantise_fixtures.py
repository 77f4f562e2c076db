#!/usr/bin/env python3
"""Writes quantise/NAME.bin: a row of floats and the quantised blocks that stand for it.

The blocks come from the `gguf` package's numpy code (MIT licence); nothing of Pagoda is used. A
file is the row as float32, followed by its blocks; how many there are follows from the file's size.

    python make_quantise_fixtures.py [DIRECTORY]      (default: the folder of this script)

Needs gguf 0.19, numpy 2. Seconds.
"""

import pathlib
import sys

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

BLOCK = 32


def blocks(rng):
    """Weights as models have them, and blocks where rounding, ties or scales are at an edge."""
    for spread in (1e-6, 2e-4, 0.02, 0.02, 0.02, 0.02, 1.0, 50.0, 3e4):
        yield rng.normal(0, spread, BLOCK)
        yield rng.standard_t(3, BLOCK) * spread
    yield np.zeros(BLOCK)
    yield -np.zeros(BLOCK)
    one = np.zeros(BLOCK)
    one[7] = -3.5
    yield one
    yield np.r_[127.0, np.arange(-15.5, 15.5)]      # halves: Q8_0 rounds away from zero
    yield np.r_[-8.0, np.arange(-7.5, 8.0, 0.5)]    # the same for Q4_0
    yield np.r_[8.0, np.arange(-7.5, 8.0, 0.5)]
    yield np.tile([0.75, -0.75], BLOCK // 2)        # the first of equal magnitudes gives the sign
    yield np.tile([-0.75, 0.75], BLOCK // 2)
    yield np.full(BLOCK, 0.1)
    yield np.linspace(-1, 1, BLOCK)
    yield rng.normal(0, 1e-9, BLOCK)                # scales that are zero in half precision
    yield np.r_[8.0e6 / 16, rng.normal(0, 1e5, BLOCK - 1).clip(-4e5, 4e5)]  # the largest scales


def main():
    here = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    folder = here / "quantise"
    folder.mkdir(parents=True, exist_ok=True)
    row = np.concatenate([np.asarray(block, np.float32) for block in
                          blocks(np.random.default_rng(20261116))])
    assert row.size % BLOCK == 0
    for name in ("Q8_0", "Q4_0"):
        made = gguf.quants.quantize(row.reshape(1, -1), T[name])
        (folder / f"{name}.bin").write_bytes(row.tobytes() + made.tobytes())


if __name__ == "__main__":
    main()
