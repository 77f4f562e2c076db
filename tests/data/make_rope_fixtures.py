#!/usr/bin/env python3
"""Writes rope/functions.txt and rope/tables.txt: bits that every host must compute.

functions.txt: values of log, power, sine and cosine. tables.txt: cosines and sines of rotary tables.
Logarithms, powers, sines and cosines are mpmath's, with 300 digits, rounded once; what lies between
them are sums, products and quotients of doubles, as src/model/rope.cc says. Nothing of Pagoda is
used, and nothing of the C library's mathematics.

    python make_rope_fixtures.py [DIRECTORY]      (default: the folder of this script)

Needs mpmath. Takes seconds.

Numbers are the bits of doubles (16 digits) and floats (8), hexadecimal.

    log X Y             Y = log X
    power X Y Z         Z = X to the power of Y
    sincos X S s C c    sin X = S + s, cos X = C + c, to 100 bits
    rope KIND BASE DIMS FACTOR ORIGINAL FAST SLOW MAGNITUDE
                        a table: none, linear or yarn; what follows are rows of it
    at POSITION PAIR COSINE SINE
                        floats of that table
"""

import pathlib
import random
import struct
import sys

import mpmath

mpmath.mp.dps = 340  # the largest angles have 309 digits before the point


def bits64(value):
    return struct.pack(">d", value).hex()


def bits32(exact):
    """Of an mpf, rounded to float at once."""
    with mpmath.workprec(24):
        return struct.pack(">f", float(+exact)).hex()


def exact_log(x):
    return float(mpmath.log(mpmath.mpf(x)))


def exact_power(x, y):
    return float(mpmath.power(mpmath.mpf(x), mpmath.mpf(y)))


def two_doubles(exact):
    high = float(exact)
    return bits64(high) + " " + bits64(float(exact - high))


def function_lines(rng):
    lines = []
    plain = [1.0, 2.0, 0.5, 10.0, 1e4, 5e5, 1e6, 1e7, 1e8, 4.0, 40.0, 128.0, 5e-324, 1e-310, 1e308]
    near_one = [1 + 2.0**-k for k in range(1, 53, 3)] + [1 - 2.0**-k for k in range(1, 53, 3)]
    drawn = [rng.uniform(0, 1) * 2.0 ** rng.randint(-60, 60) for _ in range(150)]
    for x in plain + near_one + drawn:
        lines.append(f"log {bits64(x)} {bits64(exact_log(x))}")
    for base in [1e4, 1e5, 5e5, 1e6, 1e7, 1e8, 10000.5, 0.25, 1.0, 3e300]:
        for dims in [2, 16, 64, 80, 96, 128, 256]:
            pairs = sorted({0, 1, dims // 4, dims // 2 - 1} - {-1})
            for pair in pairs:
                y = -2.0 * pair / dims
                lines.append(f"power {bits64(base)} {bits64(y)} {bits64(exact_power(base, y))}")
    for _ in range(150):
        x, y = rng.uniform(0, 100), rng.uniform(-40, 40)
        lines.append(f"power {bits64(x)} {bits64(y)} {bits64(exact_power(x, y))}")
    angles = [0.0, 5e-324, 1e-9, 0.5, 1.0, 2.0**24, 2.0**30, 6381956970095103 * 2.0**797, 1e308]
    angles += [float(mpmath.pi / 4 * k) for k in range(1, 40)]  # next to where it is 0 or 1
    angles += [float(mpmath.pi / 2 * rng.randint(1, 2**40)) for _ in range(40)]
    angles += [rng.uniform(0, 1) * 2.0 ** rng.randint(-30, 30) for _ in range(150)]
    angles += [rng.uniform(0, 1) * 2.0 ** rng.randint(30, 1023) for _ in range(100)]
    for angle in angles:
        x = rng.choice([1.0, -1.0]) * angle
        sine, cosine = mpmath.sin(mpmath.mpf(x)), mpmath.cos(mpmath.mpf(x))
        lines.append(f"sincos {bits64(x)} {two_doubles(sine)} {two_doubles(cosine)}")
    return lines


def frequencies(kind, base, dims, factor, original, fast, slow):
    def pair_of(rotations):
        # Doubles, in the order of rope.cc.
        turns = original / (rotations * 2 * float(mpmath.pi))
        return dims * exact_log(turns) / (2 * exact_log(base))

    found = []
    for pair in range(dims // 2):
        plain = exact_power(base, -2.0 * pair / dims)
        stretched = plain / factor
        if kind == "none":
            found.append(plain)
        elif kind == "linear":
            found.append(stretched)
        else:
            low = max(0.0, float(mpmath.floor(pair_of(fast))))
            high = min(dims - 1.0, float(mpmath.ceil(pair_of(slow))))
            ramp = (pair - low) / max(0.001, high - low)
            kept = 1.0 - min(max(ramp, 0.0), 1.0)
            found.append(plain * kept + stretched * (1.0 - kept))
    return found


POSITIONS = [0, 1, 2, 3, 511, 4095, 32767, 131071, 1000003, 2**22 + 1, 2**24 - 1, 2**24]

TABLES = [("none", base, dims, 1.0, 0, 32.0, 1.0, 1.0)
          for base, dims in [(1e4, 64), (1e4, 128), (1e5, 96), (5e5, 128), (1e6, 128), (1e6, 80),
                             (1e7, 256), (1e8, 64), (1e8, 256)]]
TABLES += [("linear", 1e4, 64, 4.0, 0, 32.0, 1.0, 1.0), ("linear", 1e6, 128, 8.0, 0, 32.0, 1.0, 1.0)]
# Factors of 4 and 40 of two published models, and one with uneven numbers.
TABLES += [("yarn", base, dims, factor, original, fast, slow, 1.0 + 0.1 * exact_log(factor))
           for base, dims, factor, original, fast, slow in [
               (1e6, 128, 4.0, 32768, 32.0, 1.0), (1e4, 64, 40.0, 4096, 32.0, 1.0),
               (150000.0, 64, 32.0, 4096, 32.0, 1.0), (1e8, 256, 3.7, 1000, 17.0, 0.9)]]


def table_lines():
    lines = []
    for table in TABLES:
        kind, base, dims, factor, original, fast, slow, magnitude = table
        found = frequencies(kind, base, dims, factor, original, fast, slow)
        lines.append(f"rope {kind} {bits64(base)} {dims} {bits64(factor)} {original} "
                     f"{bits64(fast)} {bits64(slow)} {bits64(magnitude)}")
        step = max(1, len(found) // 8)
        for pair in sorted(set(range(0, len(found), step)) | {len(found) - 1}):
            for position in POSITIONS:
                angle = mpmath.mpf(position * found[pair])  # a product of doubles
                # The functions as doubles, times the magnitude as doubles, then floats.
                cosine = float(mpmath.cos(angle)) * magnitude
                sine = float(mpmath.sin(angle)) * magnitude
                lines.append(f"at {position} {pair} {bits32(mpmath.mpf(cosine))} "
                             f"{bits32(mpmath.mpf(sine))}")
    return lines


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    (folder / "rope").mkdir(exist_ok=True)
    for name, lines in [("functions", function_lines(random.Random(7))), ("tables", table_lines())]:
        (folder / "rope" / f"{name}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
