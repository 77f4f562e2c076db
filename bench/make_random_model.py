#!/usr/bin/env python3
"""Writes a model of random weights: the sizes and weight types of a real one, for benchmarks.

    bench/make_random_model.py --shape llama-3.2-1b --type Q4_0 model.gguf
    bench/make_random_model.py --shape gpt-oss-20b --type MXFP4 --layers 4 model.gguf
    bench/make_random_model.py --shape llama-3-8b --type BF16 folder/

A name that ends with a slash is a folder as Hugging Face lays it out (config.json, tokenizer.json,
model.safetensors), of shapes without experts. It answers nonsense, at the speed of a real model, here
and in llama.cpp. Weights have the spread of a trained matrix (1 / sqrt(columns)), so that logits stay
finite. They depend on --seed alone. Needs Python 3.9 and nothing else; a gigabyte takes seconds.
"""

import argparse
import dataclasses
import json
import math
import os
import random
import struct


@dataclasses.dataclass(frozen=True)
class Shape:
    architecture: str
    layers: int
    width: int
    hidden: int  # of the feed-forward network, or of an expert
    heads: int
    kv_heads: int
    head: int
    vocabulary: int
    experts: int = 0  # 0: one feed-forward network
    chosen: int = 0
    rope_base: float = 500000.0
    is_tied: bool = True  # the embedding makes the logits too


SHAPES = {
    "smollm2-135m": Shape("llama", 30, 576, 1536, 9, 3, 64, 49152),
    "llama-3.2-1b": Shape("llama", 16, 2048, 8192, 32, 8, 64, 128256),
    "llama-3-8b": Shape("llama", 32, 4096, 14336, 32, 8, 128, 128256, is_tied=False),
    "gemma-2b": Shape("llama", 18, 2048, 16384, 8, 1, 256, 256000),
    "qwen3-30b-a3b": Shape("qwen3moe", 48, 2048, 768, 32, 4, 128, 151936, 128, 8, 1e6, False),
    "gpt-oss-20b": Shape("gpt-oss", 24, 2880, 2880, 64, 8, 64, 201088, 32, 4, 150000.0, False),
    "tiny": Shape("llama", 2, 256, 512, 4, 1, 64, 512),
    "tiny-qwen3moe": Shape("qwen3moe", 2, 256, 64, 4, 2, 64, 512, 8, 2, 1e6, False),
    "tiny-gpt-oss": Shape("gpt-oss", 2, 256, 64, 4, 2, 64, 512, 8, 2, 150000.0, False),
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


def power_of_two(scale):
    """The byte that stands for about this scale in MXFP4."""
    return bytes([127 + round(math.log2(scale))])


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
    "MXFP4": (39, 32, 17, lambda s: {0: power_of_two(s / 2.9)}),
}
FLOATS = {"F32": (8, 23), "F16": (5, 10), "BF16": (8, 7)}
CHUNK_BLOCKS = 1 << 18
POOL_BYTES = 1 << 26


class Bits:
    """Random bytes: pieces of a pool from random places of it, at the speed of copying."""

    def __init__(self, seed):
        self.places = random.Random(seed)
        self.pool = self.places.randbytes(POOL_BYTES)

    def take(self, size):
        begin = self.places.randrange(POOL_BYTES - size)
        return bytearray(self.pool[begin : begin + size])


def random_blocks(bits, kind, spread, count):
    """Bytes of `count` blocks, in pieces."""
    _, _, block_bytes, fields = TYPES[kind]
    while count > 0:
        blocks = min(count, CHUNK_BLOCKS)
        count -= blocks
        data = bits.take(blocks * block_bytes)
        if kind in FLOATS:
            for place, (kept, fixed) in enumerate(reversed(float_bytes(spread, *FLOATS[kind]))):
                table = bytes(b & kept | fixed for b in range(256))
                data[place::block_bytes] = data[place::block_bytes].translate(table)
        else:
            for offset, values in fields(spread).items():
                for place, value in enumerate(values, offset):
                    data[place::block_bytes] = bytes([value]) * blocks
        yield data


@dataclasses.dataclass(frozen=True)
class Tensor:
    name: str
    kind: str
    sizes: tuple  # columns first; a vector has one
    value: float = 0.0  # of every element of a vector

    def bytes(self):
        _, block, block_bytes, _ = TYPES[self.kind]
        if self.sizes[0] % block != 0:
            raise SystemExit(f"error: {self.kind} has blocks of {block}, {self.name} {self.sizes[0]} columns")
        return math.prod(self.sizes) // block * block_bytes

    def write(self, file, bits):
        if len(self.sizes) == 1:
            file.write(struct.pack("<f", self.value) * self.sizes[0])
            return
        blocks = self.bytes() // TYPES[self.kind][2]
        for piece in random_blocks(bits, self.kind, self.sizes[0] ** -0.5, blocks):
            file.write(piece)


def norm(name, width):
    return Tensor(name + ".weight", "F32", (width,), 1.0)


def attention_of(shape, prefix, kind):
    yield norm(prefix + "attn_norm", shape.width)
    queries, keys = shape.heads * shape.head, shape.kv_heads * shape.head
    sizes = {"q": (shape.width, queries), "k": (shape.width, keys), "v": (shape.width, keys)}
    for name, (columns, rows) in {**sizes, "output": (queries, shape.width)}.items():
        yield Tensor(f"{prefix}attn_{name}.weight", kind, (columns, rows))
        if shape.architecture == "gpt-oss":
            yield Tensor(f"{prefix}attn_{name}.bias", "F32", (rows,))
    if shape.architecture == "gpt-oss":
        yield Tensor(prefix + "attn_sinks.weight", "F32", (shape.heads,))
    if shape.architecture == "qwen3moe":
        yield norm(prefix + "attn_q_norm", shape.head)
        yield norm(prefix + "attn_k_norm", shape.head)


def feed_forward_of(shape, prefix, kind):
    is_gpt_oss = shape.architecture == "gpt-oss"
    yield norm(prefix + ("post_attention_norm" if is_gpt_oss else "ffn_norm"), shape.width)
    sizes = {"gate": (shape.width, shape.hidden), "up": (shape.width, shape.hidden)}
    sizes["down"] = (shape.hidden, shape.width)
    for name, (columns, rows) in sizes.items():
        if shape.experts == 0:
            yield Tensor(f"{prefix}ffn_{name}.weight", kind, (columns, rows))
            continue
        yield Tensor(f"{prefix}ffn_{name}_exps.weight", kind, (columns, rows, shape.experts))
        if is_gpt_oss:
            yield Tensor(f"{prefix}ffn_{name}_exps.bias", "F32", (rows, shape.experts))
    if shape.experts > 0:
        yield Tensor(prefix + "ffn_gate_inp.weight", "F32", (shape.width, shape.experts))
        if is_gpt_oss:
            yield Tensor(prefix + "ffn_gate_inp.bias", "F32", (shape.experts,))


def tensors_of(shape, kind):
    """In the order of the file. MXFP4 is a type of experts: all else is Q8_0 then."""
    other = "Q8_0" if kind == "MXFP4" else kind
    yield Tensor("token_embd.weight", other, (shape.width, shape.vocabulary))
    yield norm("output_norm", shape.width)
    if not shape.is_tied:
        yield Tensor("output.weight", other, (shape.width, shape.vocabulary))
    for layer in range(shape.layers):
        yield from attention_of(shape, f"blk.{layer}.", other)
        yield from feed_forward_of(shape, f"blk.{layer}.", kind)


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


def tokenizer_of(vocabulary):
    special = ["<unk>", "<s>", "</s>"]
    tokens = special + [f"<0x{byte:02X}>" for byte in range(256)]
    tokens += [f"\u2581w{i}" for i in range(vocabulary - len(tokens))]
    kinds = [2, 3, 3] + [6] * 256 + [1] * (vocabulary - 259)
    return {
        "tokenizer.ggml.model": word("llama"),
        "tokenizer.ggml.tokens": array(8, [text(token) for token in tokens]),
        "tokenizer.ggml.scores": array(6, [struct.pack("<f", -i) for i in range(vocabulary)]),
        "tokenizer.ggml.token_type": array(5, [struct.pack("<i", kind) for kind in kinds]),
        "tokenizer.ggml.bos_token_id": count(1),
        "tokenizer.ggml.eos_token_id": count(2),
        "tokenizer.ggml.unknown_token_id": count(0),
    }


def metadata_of(shape, name, context):
    own = {
        "block_count": count(shape.layers),
        "context_length": count(context),
        "embedding_length": count(shape.width),
        "feed_forward_length": count(shape.hidden),
        "attention.head_count": count(shape.heads),
        "attention.head_count_kv": count(shape.kv_heads),
        "attention.key_length": count(shape.head),
        "attention.value_length": count(shape.head),
        "attention.layer_norm_rms_epsilon": real(1e-5),
        "rope.dimension_count": count(shape.head),
        "rope.freq_base": real(shape.rope_base),
        "vocab_size": count(shape.vocabulary),
    }
    if shape.experts > 0:
        own["expert_count"] = count(shape.experts)
        own["expert_used_count"] = count(shape.chosen)
        own["expert_feed_forward_length"] = count(shape.hidden)
    if shape.architecture == "gpt-oss":
        own["attention.sliding_window"] = count(128)
        own["rope.scaling.type"] = word("yarn")
        own["rope.scaling.factor"] = real(32.0)
        own["rope.scaling.original_context_length"] = count(4096)
    return {
        "general.architecture": word(shape.architecture),
        "general.name": word(name),
        **{f"{shape.architecture}.{key}": value for key, value in own.items()},
        **tokenizer_of(shape.vocabulary),
    }


def padding(size):
    return bytes(-size % 32)


def write_gguf(path, shape, kind, name, context, bits):
    tensors = list(tensors_of(shape, kind))
    metadata = metadata_of(shape, name, context)
    header = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata))
    for key, (type_id, value) in metadata.items():
        header += text(key) + struct.pack("<I", type_id) + value
    offset = 0
    for tensor in tensors:
        header += text(tensor.name) + struct.pack("<I", len(tensor.sizes))
        header += struct.pack(f"<{len(tensor.sizes)}Q", *tensor.sizes)
        header += struct.pack("<IQ", TYPES[tensor.kind][0], offset)
        offset += tensor.bytes() + len(padding(tensor.bytes()))
    with open(path, "wb") as file:
        file.write(header + padding(len(header)))
        for tensor in tensors:
            tensor.write(file, bits)
            file.write(padding(tensor.bytes()))


HF_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}


def hf_name(name):
    if not name.startswith("blk."):
        return HF_NAMES[name]
    _, layer, rest = name.split(".", 2)
    return f"model.layers.{layer}.{HF_NAMES[rest]}"


def hf_config(shape, kind, context):
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.width,
        "intermediate_size": shape.hidden,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head,
        "vocab_size": shape.vocabulary,
        "max_position_embeddings": context,
        "rms_norm_eps": 1e-5,
        "rope_theta": shape.rope_base,
        "hidden_act": "silu",
        "tie_word_embeddings": shape.is_tied,
        "bos_token_id": 256,
        "eos_token_id": 257,
        "torch_dtype": {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}[kind],
    }


def byte_characters():
    """The characters that stand for the 256 bytes in byte-level BPE."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + i) for i, byte in enumerate(others)}


def hf_tokenizer(vocabulary):
    words = [character for _, character in sorted(byte_characters().items())]
    added = ["<s>", "</s>"]
    words += [f"w{i:06}" for i in range(vocabulary - len(words) - len(added))]
    # Added tokens stand behind the bytes, words that no text becomes behind them.
    vocab = {word: i if i < 256 else i + len(added) for i, word in enumerate(words)}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": 256 + i, "content": content, "special": True, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False}
            for i, content in enumerate(added)
        ],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocab, "merges": []},
    }


def write_folder(path, shape, kind, context, bits):
    if shape.architecture != "llama" or kind not in FLOATS:
        raise SystemExit("error: folders are written of shapes without experts, in F32, F16 or BF16")
    os.makedirs(path, exist_ok=True)
    for name, value in (("config", hf_config(shape, kind, context)), ("tokenizer", hf_tokenizer(shape.vocabulary))):
        with open(os.path.join(path, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(value, file)
    tensors = list(tensors_of(shape, kind))
    header, offset = {}, 0
    for tensor in tensors:
        end = offset + tensor.bytes()
        header[hf_name(tensor.name)] = {
            "dtype": tensor.kind, "shape": list(reversed(tensor.sizes)), "data_offsets": [offset, end]}
        offset = end
    data = json.dumps(header).encode()
    data += b" " * (-len(data) % 8)
    with open(os.path.join(path, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(data)) + data)
        for tensor in tensors:
            tensor.write(file, bits)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", help="a GGUF file, or a folder where the name ends with a slash")
    parser.add_argument("--shape", choices=SHAPES, default="llama-3.2-1b")
    parser.add_argument("--type", choices=TYPES, default="Q4_0", help="MXFP4: of experts, all else Q8_0")
    parser.add_argument("--layers", type=int, help="fewer than the shape has")
    parser.add_argument("--context", type=int, default=8192)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    shape = SHAPES[given.shape]
    if given.layers:
        shape = dataclasses.replace(shape, layers=given.layers)
    bits = Bits(given.seed)
    if given.file.endswith("/"):
        write_folder(given.file, shape, given.type, given.context, bits)
    else:
        name = f"random {given.shape} {given.type}"
        write_gguf(given.file, shape, given.type, name, given.context, bits)


if __name__ == "__main__":
    main()
