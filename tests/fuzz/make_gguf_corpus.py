#!/usr/bin/env python3
"""Writes corpus/gguf: tiny files that reach every branch of the GGUF parser.

    python make_gguf_corpus.py [DIRECTORY]      (default: corpus/gguf beside this script)

Needs nothing but Python.
"""

import pathlib
import struct
import sys

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q",
           11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9

# type id: (elements, bytes) of a block
BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 16: (256, 66),
    17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82),
    23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56),
    30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17), 40: (64, 36), 41: (128, 18),
    42: (64, 18),
}


def text(value):
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def scalar(kind, value):
    return text(value) if kind == STRING else struct.pack(SCALARS[kind], value)


def key(name, kind, value):
    return text(name) + struct.pack("<I", kind) + scalar(kind, value)


def array(name, kind, values):
    body = b"".join(scalar(kind, value) for value in values)
    return text(name) + struct.pack("<IIQ", ARRAY, kind, len(values)) + body


def file(keys=(), tensors=(), version=3, alignment=32):
    """`tensors` are (name, extents, type id)."""
    head = b"GGUF" + struct.pack("<Iqq", version, len(tensors), len(keys)) + b"".join(keys)
    data = b""
    for name, extents, kind in tensors:
        head += text(name) + struct.pack(f"<I{len(extents)}q", len(extents), *extents)
        head += struct.pack("<IQ", kind, len(data))
        elements, size = BLOCKS[kind]
        count = 1
        for extent in extents:
            count *= extent
        data += bytes(i * 37 % 251 for i in range(count // elements * size))
        data += bytes(-len(data) % alignment)
    return head + bytes(-len(head) % alignment) + data if tensors else head


def files():
    every_scalar = [key(f"k{kind}", kind, 1) for kind in SCALARS] + [key("text", STRING, "pagoda")]
    every_array = [array(f"a{kind}", kind, [0, 1, 1]) for kind in SCALARS]
    yield "empty", file()
    yield "scalars", file(every_scalar)
    yield "arrays", file(every_array + [array("texts", STRING, ["", "a", "\u2581b"])])
    yield "version2", file([key("k", 4, 7)], [("t", [4], 0)], version=2)
    yield "alignment", file([key("general.alignment", 4, 8)], [("a", [3], 24), ("b", [2, 2], 0)],
                            alignment=8)
    yield "dimensions", file((), [("t1", [2], 0), ("t4", [1, 2, 1, 2], 1)])
    yield "split", file([key("split.no", 2, 0), key("split.count", 2, 2),
                         key("split.tensors.count", 5, 1)], [("t", [1], 0)])
    yield "vocabulary", file([key("general.architecture", STRING, "llama"),
                              key("tokenizer.ggml.model", STRING, "llama"),
                              array("tokenizer.ggml.tokens", STRING, ["<unk>", "<s>", "</s>"]),
                              array("tokenizer.ggml.scores", 6, [0.0, -1.0, -2.0]),
                              array("tokenizer.ggml.token_type", 5, [2, 3, 3])])
    yield "types_plain", file((), [(f"t{k}", [3], k) for k, b in BLOCKS.items() if b[0] == 1])
    yield "types_32", file((), [(f"t{k}", [b[0]], k) for k, b in BLOCKS.items() if 1 < b[0] < 256])
    for kind, (elements, _) in BLOCKS.items():
        if elements == 256:
            yield f"type_{kind}", file((), [("t", [256], kind)])


def main():
    default = pathlib.Path(__file__).parent / "corpus" / "gguf"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files():
        (folder / f"{name}.gguf").write_bytes(data)


if __name__ == "__main__":
    main()
