#!/usr/bin/env python3
"""Writes corpus/safetensors/: small files, good and damaged, from which the fuzzer starts."""

import json
import pathlib
import struct

FOLDER = pathlib.Path(__file__).parent / "corpus" / "safetensors"


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def file_of(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(range(data))


FILES = {
    "good": file_of({"__metadata__": {"format": "pt"}, "a": tensor("F32", [2], 0, 8),
                     "b": tensor("BF16", [2, 3], 8, 20)}, 20),
    "empty_tensor": file_of({"a": tensor("F32", [0, 4], 0, 0), "b": tensor("U8", [3], 0, 3)}, 3),
    "scalar": file_of({"a": tensor("F8_E4M3", [], 0, 1)}, 1),
    "no_tensors": file_of({}, 0),
    "hole": file_of({"a": tensor("U8", [1], 0, 1), "b": tensor("U8", [1], 2, 3)}, 3),
    "overlap": file_of({"a": tensor("U8", [2], 0, 2), "b": tensor("U8", [2], 1, 3)}, 3),
    "far": file_of({"a": tensor("U8", [1], 1 << 63, (1 << 63) + 1)}, 1),
    "product": file_of({"a": tensor("F32", [1 << 32, 1 << 32], 0, 0)}, 0),
    "unknown_type": file_of({"a": tensor("F4", [2], 0, 1)}, 1),
    "deep": file_of(b"[" * 200 + b"]" * 200, 0),
    "long_header": struct.pack("<Q", 1 << 63) + b"{}",
    "short": b"\x00\x01\x02",
}


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, data in FILES.items():
        (FOLDER / name).write_bytes(data)


if __name__ == "__main__":
    main()
