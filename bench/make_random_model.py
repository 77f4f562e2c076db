#!/usr/bin/env python3
"""Writes a llama model of random weights: the sizes and weight types of a real one, for benchmarks.

    bench/make_random_model.py --shape llama-3.2-1b --type Q4_0 model.gguf

It answers nonsense, at the speed of a real model, here and in llama.cpp. Weights have the spread of
a trained matrix (1 / sqrt(columns)), so that logits stay finite; the embedding makes the logits
too. Weights depend on --seed alone. Needs Python 3.9 and nothing else; a gigabyte takes seconds.
"""

import argparse
import math
import random
import struct

# layers, width, hidden width, heads, KV heads, head size, vocabulary
SHAPES = {
    "smollm2-135m": (30, 576, 1536, 9, 3, 64, 49152),
    "llama-3.2-1b": (16, 2048, 8192, 32, 8, 64, 128256),
    "gemma-2b": (18, 2048, 16384, 8, 1, 256, 256000),
    "tiny": (2, 256, 512, 4, 1, 64, 512),
}


def half(value):
    return struct.pack("<e", value)


def float_bytes(spread, exponent_bits, mantissa_bits):
    """Of a float around `spread`, most significant byte first: bits kept of random ones, bits set."""
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = max(math.floor(math.log2(spread)) + bias, 1)
    width = 1 + exponent_bits + mantissa_bits
    fixed = exponent << mantissa_bits
    kept = ~(((1 << exponent_bits) - 1) << mantissa_bits)
    shifts = range(width - 8, -1, -8)
    return [(kept >> s & 0xFF, fixed >> s & 0xFF) for s in shifts]


# Of each type: its id in the format, weights and bytes of a block, and what stands at fixed places
# of a block instead of random bits: {offset: bytes}. `s` is the spread of weights. A code's mean is
# taken off by the minimum where the type has one; the divisors are the spreads of random codes.
TYPES = {
    "F32": (0, 1, 4, None),
    "F16": (1, 1, 2, None),
    "BF16": (30, 1, 2, None),
    "Q4_0": (2, 32, 18, lambda s: {0: half(s / 4.6)}),
    "Q4_1": (3, 32, 20, lambda s: {0: half(s / 4.6), 2: half(-7.5 * s / 4.6)}),
    "Q5_0": (6, 32, 22, lambda s: {0: half(s / 9.2)}),
    "Q5_1": (7, 32, 24, lambda s: {0: half(s / 9.2), 2: half(-15.5 * s / 9.2)}),
    "Q8_0": (8, 32, 34, lambda s: {0: half(s / 74)}),
    "Q4_K": (12, 256, 144, lambda s: {0: half(s / 250), 2: half(7.5 * s / 250)}),
    "Q5_K": (13, 256, 176, lambda s: {0: half(s / 500), 2: half(15.5 * s / 500)}),
    "Q6_K": (14, 256, 210, lambda s: {192: bytes(range(1, 17)), 208: half(s / 180)}),
}
FLOATS = {"F32": (8, 23), "F16": (5, 10), "BF16": (8, 7)}
CHUNK_BLOCKS = 1 << 18


def random_blocks(bits, kind, spread, count):
    """Bytes of `count` blocks, in pieces."""
    _, _, block_bytes, fields = TYPES[kind]
    while count > 0:
        blocks = min(count, CHUNK_BLOCKS)
        count -= blocks
        data = bytearray(bits.randbytes(blocks * block_bytes))
        if kind in FLOATS:
            for place, (kept, fixed) in enumerate(reversed(float_bytes(spread, *FLOATS[kind]))):
                table = bytes(b & kept | fixed for b in range(256))
                data[place::block_bytes] = data[place::block_bytes].translate(table)
        else:
            for offset, values in fields(spread).items():
                for place, value in enumerate(values, offset):
                    data[place::block_bytes] = bytes([value]) * blocks
        yield data


def tensors_of(shape, kind):
    """(name, type, columns, rows), in the order of the file; norms have one row."""
    layers, width, hidden, heads, kv_heads, head, vocabulary = shape
    yield "token_embd.weight", kind, width, vocabulary
    yield "output_norm.weight", "F32", width, 1
    for layer in range(layers):
        prefix = f"blk.{layer}."
        yield prefix + "attn_norm.weight", "F32", width, 1
        yield prefix + "attn_q.weight", kind, width, heads * head
        yield prefix + "attn_k.weight", kind, width, kv_heads * head
        yield prefix + "attn_v.weight", kind, width, kv_heads * head
        yield prefix + "attn_output.weight", kind, heads * head, width
        yield prefix + "ffn_norm.weight", "F32", width, 1
        yield prefix + "ffn_gate.weight", kind, width, hidden
        yield prefix + "ffn_up.weight", kind, width, hidden
        yield prefix + "ffn_down.weight", kind, hidden, width


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


# Metadata values: (type id, bytes).
def count(value):
    return 4, struct.pack("<I", value)


def real(value):
    return 6, struct.pack("<f", value)


def word(value):
    return 8, text(value)


def array(type_id, items):
    return 9, struct.pack("<IQ", type_id, len(items)) + b"".join(items)


def metadata_of(shape, name, context):
    layers, width, hidden, heads, kv_heads, head, vocabulary = shape
    special = ["<unk>", "<s>", "</s>"]
    tokens = special + [f"<0x{byte:02X}>" for byte in range(256)]
    tokens += [f"\u2581w{i}" for i in range(vocabulary - len(tokens))]
    kinds = [2, 3, 3] + [6] * 256 + [1] * (vocabulary - 259)
    return {
        "general.architecture": word("llama"),
        "general.name": word(name),
        "llama.block_count": count(layers),
        "llama.context_length": count(context),
        "llama.embedding_length": count(width),
        "llama.feed_forward_length": count(hidden),
        "llama.attention.head_count": count(heads),
        "llama.attention.head_count_kv": count(kv_heads),
        "llama.attention.key_length": count(head),
        "llama.attention.value_length": count(head),
        "llama.attention.layer_norm_rms_epsilon": real(1e-5),
        "llama.rope.dimension_count": count(head),
        "llama.rope.freq_base": real(500000.0),
        "llama.vocab_size": count(vocabulary),
        "tokenizer.ggml.model": word("llama"),
        "tokenizer.ggml.tokens": array(8, [text(token) for token in tokens]),
        "tokenizer.ggml.scores": array(6, [struct.pack("<f", -i) for i in range(vocabulary)]),
        "tokenizer.ggml.token_type": array(5, [struct.pack("<i", kind) for kind in kinds]),
        "tokenizer.ggml.bos_token_id": count(1),
        "tokenizer.ggml.eos_token_id": count(2),
        "tokenizer.ggml.unknown_token_id": count(0),
    }


def tensor_bytes(kind, columns, rows):
    _, block, block_bytes, _ = TYPES[kind]
    if columns % block != 0:
        raise SystemExit(f"error: {kind} has blocks of {block}, but a matrix has {columns} columns")
    return columns * rows // block * block_bytes


def padding(size):
    return bytes(-size % 32)


def write_model(path, shape, kind, name, context, seed):
    tensors = list(tensors_of(shape, kind))
    metadata = metadata_of(shape, name, context)
    header = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata))
    for key, (type_id, value) in metadata.items():
        header += text(key) + struct.pack("<I", type_id) + value
    offset = 0
    for tensor, tensor_kind, columns, rows in tensors:
        sizes = [columns] if rows == 1 else [columns, rows]
        header += text(tensor) + struct.pack("<I", len(sizes))
        header += struct.pack(f"<{len(sizes)}Q", *sizes)
        header += struct.pack("<IQ", TYPES[tensor_kind][0], offset)
        size = tensor_bytes(tensor_kind, columns, rows)
        offset += size + len(padding(size))
    bits = random.Random(seed)
    with open(path, "wb") as file:
        file.write(header + padding(len(header)))
        for _, tensor_kind, columns, rows in tensors:
            size = tensor_bytes(tensor_kind, columns, rows)
            if rows == 1:
                file.write(struct.pack("<f", 1.0) * columns)
            else:
                blocks = size // TYPES[tensor_kind][2]
                for piece in random_blocks(bits, tensor_kind, columns**-0.5, blocks):
                    file.write(piece)
            file.write(padding(size))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--shape", choices=SHAPES, default="llama-3.2-1b")
    parser.add_argument("--type", choices=TYPES, default="Q4_0")
    parser.add_argument("--layers", type=int, help="fewer than the shape has")
    parser.add_argument("--context", type=int, default=8192)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    shape = SHAPES[given.shape]
    if given.layers:
        shape = (given.layers, *shape[1:])
    name = f"random {given.shape} {given.type}"
    write_model(given.file, shape, given.type, name, given.context, given.seed)


if __name__ == "__main__":
    main()
