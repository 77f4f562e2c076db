#!/usr/bin/env python3
"""Writes models/stories260K.gguf: karpathy's 260 thousand parameter story teller as GGUF.

    python make_stories260k.py MODEL.bin TOKENIZER.bin [OUTPUT.gguf]

MODEL.bin is stories260K.bin and TOKENIZER.bin tok512.bin, both in llama2.c's format:

    model      7 x i32: dim, hidden, layers, heads, kv heads, vocabulary, context;
               a negative vocabulary means that the classifier has weights of its own
               f32 weights in the order of WEIGHTS below, then the two RoPE tables (not used)
    tokenizer  i32 longest piece; then per piece f32 score, i32 length, bytes

llama2.c rotates adjacent pairs, as GGUF's "llama" does, so Q and K stay as they are. Its tokenizer
export wrote sentencepiece's U+2581 as a blank and put newlines around <s> and </s>; both are
undone here. Needs gguf, numpy. Seconds.
"""

import pathlib
import struct
import sys

import gguf
import numpy as np

CONFIG = struct.Struct("<7i")
PIECE = struct.Struct("<fi")


def read_model(path):
    """The config by name, and the weights by llama2.c's names, each [layers, rows, columns]."""
    data = path.read_bytes()
    names = ["dim", "hidden", "layers", "heads", "kv_heads", "vocab", "context"]
    config = dict(zip(names, CONFIG.unpack_from(data)))
    shared = config["vocab"] > 0
    config["vocab"] = abs(config["vocab"])
    dim, hidden, layers, context = (config[n] for n in ["dim", "hidden", "layers", "context"])
    head = dim // config["heads"]
    kv_dim = head * config["kv_heads"]
    shapes = {
        "token_embedding": (config["vocab"], dim),
        "rms_att": (layers, dim),
        "wq": (layers, dim, dim),
        "wk": (layers, kv_dim, dim),
        "wv": (layers, kv_dim, dim),
        "wo": (layers, dim, dim),
        "rms_ffn": (layers, dim),
        "w1": (layers, hidden, dim),
        "w2": (layers, dim, hidden),
        "w3": (layers, hidden, dim),
        "rms_final": (dim,),
        "rope_cos": (context, head // 2),
        "rope_sin": (context, head // 2),
    }
    if not shared:
        shapes["wcls"] = (config["vocab"], dim)
    weights = {}
    offset = CONFIG.size
    for name, shape in shapes.items():
        count = int(np.prod(shape))
        weights[name] = np.frombuffer(data, "<f4", count, offset).reshape(shape)
        offset += 4 * count
    assert offset == len(data), f"{path}: {len(data)} bytes, expected {offset}"
    return config, weights


def read_tokenizer(path, count):
    """Pieces, scores and GGUF token types."""
    data = path.read_bytes()
    pieces, scores = [], []
    offset = 4
    for _ in range(count):
        score, length = PIECE.unpack_from(data, offset)
        offset += PIECE.size
        pieces.append(data[offset:offset + length])
        scores.append(score)
        offset += length
    assert offset == len(data), f"{path}: {len(data)} bytes, expected {offset}"
    assert pieces[:3] == [b"<unk>", b"\n<s>\n", b"\n</s>\n"], pieces[:3]
    assert pieces[3:259] == [b"<0x%02X>" % byte for byte in range(256)]
    pieces[1:3] = [b"<s>", b"</s>"]
    texts = [piece.replace(b" ", "\u2581".encode()) for piece in pieces]
    kinds = gguf.TokenType
    types = [kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL] + [kinds.BYTE] * 256
    types += [kinds.NORMAL] * (count - len(types))
    return texts, scores, types


def write_metadata(writer, config):
    head = config["dim"] // config["heads"]
    writer.add_name("stories260K")
    writer.add_license("mit")
    writer.add_source_url("https://huggingface.co/karpathy/tinyllamas")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_vocab_size(config["vocab"])
    writer.add_context_length(config["context"])
    writer.add_embedding_length(config["dim"])
    writer.add_block_count(config["layers"])
    writer.add_feed_forward_length(config["hidden"])
    writer.add_head_count(config["heads"])
    writer.add_head_count_kv(config["kv_heads"])
    writer.add_rope_dimension_count(head)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)


def write_tokenizer(writer, path, count):
    texts, scores, types = read_tokenizer(path, count)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(texts)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(True)


def write_weights(writer, config, weights):
    writer.add_tensor("token_embd.weight", weights["token_embedding"])
    layers = {
        "attn_norm": "rms_att", "attn_q": "wq", "attn_k": "wk", "attn_v": "wv",
        "attn_output": "wo", "ffn_norm": "rms_ffn", "ffn_gate": "w1", "ffn_down": "w2",
        "ffn_up": "w3",
    }
    for layer in range(config["layers"]):
        for name, source in layers.items():
            writer.add_tensor(f"blk.{layer}.{name}.weight", weights[source][layer])
    writer.add_tensor("output_norm.weight", weights["rms_final"])
    if "wcls" in weights:
        writer.add_tensor("output.weight", weights["wcls"])


def main():
    here = pathlib.Path(__file__).parent
    output = sys.argv[3] if len(sys.argv) > 3 else here / "models" / "stories260K.gguf"
    config, weights = read_model(pathlib.Path(sys.argv[1]))
    writer = gguf.GGUFWriter(output, "llama")
    write_metadata(writer, config)
    write_tokenizer(writer, pathlib.Path(sys.argv[2]), config["vocab"])
    write_weights(writer, config, weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
