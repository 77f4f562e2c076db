#!/usr/bin/env python3
"""Writes models/tiny_*.gguf and logits/tiny_*.bin: small random llama models and their logits.

The models are made and run by `transformers` (float64 weights and products, eager attention;
norms, softmax and angles stay in its float32) and written by the `gguf` package; nothing of
Pagoda is used. Before a file is kept, a second forward pass in numpy reads the GGUF back and must
agree, which proves that the file says what the oracle ran. Formats: logits/README.md.

    python make_tiny_models.py [DIRECTORY]      (default: the folder of this script)

Needs torch, transformers, gguf, numpy. Seconds.
"""

import dataclasses
import math
import pathlib
import struct
import sys

import gguf
import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM, MinistralConfig, MinistralForCausalLM

VOCAB = 96


@dataclasses.dataclass
class Tiny:
    name: str
    seed: int
    embd: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    layers: int = 2
    tokens: int = 100
    context: int = 128
    tied: bool = False
    half: bool = True  # matrices in F16; otherwise F32
    theta: float = 10000.0
    eps: float = 1e-5
    scaling: dict = dataclasses.field(default_factory=lambda: {"rope_type": "default"})
    window: int = 0  # odd layers are full, even layers see `window` tokens
    half_split: bool = False  # leave Q and K in the order of transformers


MODELS = [
    Tiny("tiny_mha", 1, embd=64, heads=4, kv_heads=4, head_dim=16, ffn=64, tied=True),
    Tiny("tiny_gqa", 2, embd=64, heads=8, kv_heads=2, head_dim=16, ffn=48, tokens=150, context=256,
         theta=500000.0, eps=1e-6),
    Tiny("tiny_mqa", 3, embd=96, heads=6, kv_heads=1, head_dim=16, ffn=32, tied=True),
    Tiny("tiny_linear", 4, embd=32, heads=2, kv_heads=1, head_dim=16, ffn=64, half=False,
         scaling={"rope_type": "linear", "factor": 4.0}),
    Tiny("tiny_yarn", 5, embd=32, heads=2, kv_heads=1, head_dim=16, ffn=64, half=False,
         scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}),
    Tiny("tiny_llama3", 6, embd=32, heads=2, kv_heads=1, head_dim=16, ffn=64,
         scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                  "high_freq_factor": 4.0, "original_max_position_embeddings": 32}),
    Tiny("tiny_window", 7, embd=32, heads=4, kv_heads=2, head_dim=8, ffn=64, layers=4,
         tokens=120, window=24),
    Tiny("tiny_neox", 8, embd=32, heads=2, kv_heads=1, head_dim=16, ffn=64, half_split=True),
]


def make_oracle(tiny):
    """A transformers model with seeded weights, already rounded to what the file will hold."""
    shape = dict(
        vocab_size=VOCAB, hidden_size=tiny.embd, intermediate_size=tiny.ffn,
        num_hidden_layers=tiny.layers, num_attention_heads=tiny.heads,
        num_key_value_heads=tiny.kv_heads, head_dim=tiny.head_dim,
        max_position_embeddings=tiny.context, rms_norm_eps=tiny.eps, tie_word_embeddings=tiny.tied,
        rope_parameters={"rope_theta": tiny.theta, **tiny.scaling}, attn_implementation="eager")
    if tiny.window:
        kinds = ["full_attention" if (i + 1) % 2 == 0 else "sliding_attention"
                 for i in range(tiny.layers)]
        model = MinistralForCausalLM(
            MinistralConfig(**shape, sliding_window=tiny.window, layer_types=kinds))
    else:
        model = LlamaForCausalLM(LlamaConfig(**shape))
    model = model.double().eval()

    rng = np.random.default_rng(tiny.seed)
    # Scores Q.K / sqrt(head_dim) get a standard deviation near 2, logits one between 1 and 3.
    gain = {"q_proj": 1.6, "k_proj": 1.3, "v_proj": 1.0, "o_proj": 1.4, "gate_proj": 1.2,
            "up_proj": 1.0, "down_proj": 1.2, "embed_tokens": 2.0, "lm_head": 2.0}
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 1:
                values = rng.uniform(0.6, 1.4, weight.shape).astype(np.float32)
            else:
                spread = gain[name.split(".")[-2]] / math.sqrt(weight.shape[1])
                values = rng.normal(0.0, spread, weight.shape).astype(np.float32)
                if tiny.half:
                    values = values.astype(np.float16)
            weight.copy_(torch.from_numpy(values.astype(np.float64)))
    ids = rng.integers(3, VOCAB, tiny.tokens)
    return model, ids


def rope_factors(tiny):
    """What llama.cpp's converter stores as rope_freqs.weight for rope type llama3."""
    scaling = tiny.scaling
    original = scaling["original_max_position_embeddings"]
    low_wave = original / scaling["low_freq_factor"]
    high_wave = original / scaling["high_freq_factor"]
    factors = []
    for i in range(0, tiny.head_dim, 2):
        wave = 2 * math.pi * tiny.theta ** (i / tiny.head_dim)
        if wave < high_wave:
            factors.append(1.0)
        elif wave > low_wave:
            factors.append(scaling["factor"])
        else:
            smooth = (original / wave - scaling["low_freq_factor"]) / (
                scaling["high_freq_factor"] - scaling["low_freq_factor"])
            factors.append(1.0 / ((1.0 - smooth) / scaling["factor"] + smooth))
    assert len(set(factors)) >= 3, "one of the three cases is not exercised"
    return np.array(factors, dtype=np.float32)


def adjacent_pairs(rows, heads):
    """[head, 2, pair, in] -> [head, pair, 2, in]: the converter's permutation of Q and K."""
    shape = rows.shape
    return rows.reshape(heads, 2, shape[0] // heads // 2, shape[1]).swapaxes(1, 2).reshape(shape)


def write_keys(writer, tiny):
    writer.add_name(tiny.name)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16 if tiny.half else gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(tiny.context)
    writer.add_embedding_length(tiny.embd)
    writer.add_block_count(tiny.layers)
    writer.add_feed_forward_length(tiny.ffn)
    writer.add_head_count(tiny.heads)
    writer.add_head_count_kv(tiny.kv_heads)
    if tiny.head_dim * tiny.heads != tiny.embd:
        writer.add_key_length(tiny.head_dim)
        writer.add_value_length(tiny.head_dim)
    writer.add_layer_norm_rms_eps(tiny.eps)
    writer.add_rope_dimension_count(tiny.head_dim)
    writer.add_rope_freq_base(tiny.theta)
    writer.add_vocab_size(VOCAB)
    if tiny.scaling["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(tiny.scaling["factor"])
    if tiny.scaling["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(tiny.scaling["factor"])
        writer.add_rope_scaling_orig_ctx_len(tiny.scaling["original_max_position_embeddings"])
    if tiny.window:
        writer.add_sliding_window(tiny.window)
        writer.add_uint32("llama.attention.sliding_window_pattern", 2)
    if tiny.half_split:
        writer.add_bool("pagoda.rope.half_split", True)
    writer.add_tokenizer_model("llama")
    words = ["<unk>", "<s>", "</s>"] + [chr(c) for c in range(0x21, 0x7F)]
    words = (words + [f"\u2581{c}" for c in "abcdefgh"])[:VOCAB]
    writer.add_token_list(words)
    writer.add_token_scores([0.0] * 3 + [-float(i) for i in range(VOCAB - 3)])
    writer.add_token_types([gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
                           + [gguf.TokenType.NORMAL] * (VOCAB - 3))
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)


def write_gguf(path, tiny, model):
    names = {
        "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
        "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }
    outer = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    writer = gguf.GGUFWriter(path, "llama")
    write_keys(writer, tiny)
    for name, weight in model.named_parameters():
        base = name.removesuffix(".weight")
        values = weight.detach().numpy()
        if base in outer:
            base = outer[base]
        else:
            _, _, layer, part = base.split(".", 3)
            base = f"blk.{layer}.{names[part]}"
        if not tiny.half_split and base.endswith("attn_q"):
            values = adjacent_pairs(values, tiny.heads)
        if not tiny.half_split and base.endswith("attn_k"):
            values = adjacent_pairs(values, tiny.kv_heads)
        dtype = np.float16 if tiny.half and values.ndim == 2 else np.float32
        writer.add_tensor(base + ".weight", values.astype(dtype))
    if tiny.scaling["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", rope_factors(tiny))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def frequencies(keys, tensors, dim):
    """Angles per position and the factor on cos and sin, from the keys of the file alone."""
    base = keys["llama.rope.freq_base"]
    plain = base ** (-np.arange(0, dim, 2) / dim)
    kind = keys.get("llama.rope.scaling.type", "none")
    if "rope_freqs.weight" in tensors:
        return plain / tensors["rope_freqs.weight"], 1.0
    if kind == "none":
        return plain, 1.0
    factor = keys["llama.rope.scaling.factor"]
    if kind == "linear":
        return plain / factor, 1.0
    original = keys["llama.rope.scaling.original_context_length"]
    bound = lambda turns: dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))
    low, high = max(math.floor(bound(32)), 0), min(math.ceil(bound(1)), dim - 1)
    ramp = np.clip((np.arange(dim // 2) - low) / max(high - low, 0.001), 0, 1)
    return plain / factor * ramp + plain * (1 - ramp), 0.1 * math.log(factor) + 1.0


def numpy_forward(path, ids, ignore=()):
    """float64 forward pass from the file; keys and tensors named in `ignore` are not seen."""
    reader = gguf.GGUFReader(path)
    keys = {k: f.contents() for k, f in reader.fields.items() if k not in ignore}
    w = {t.name: t.data.astype(np.float64) for t in reader.tensors if t.name not in ignore}
    heads, kv_heads = keys["llama.attention.head_count"], keys["llama.attention.head_count_kv"]
    dim = keys.get("llama.attention.key_length", keys["llama.embedding_length"] // heads)
    angle, magnitude = frequencies(keys, w, dim)
    angle = np.arange(len(ids))[:, None] * angle[None, :]
    cos, sin = np.cos(angle)[:, None] * magnitude, np.sin(angle)[:, None] * magnitude
    split = keys.get("pagoda.rope.half_split", False)

    def norm(x, weight):
        eps = keys["llama.attention.layer_norm_rms_epsilon"]
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight

    def rotate(x):
        first, second = ((slice(None, dim // 2), slice(dim // 2, None)) if split
                         else (slice(0, None, 2), slice(1, None, 2)))
        out = np.empty_like(x)
        out[..., first] = x[..., first] * cos - x[..., second] * sin
        out[..., second] = x[..., first] * sin + x[..., second] * cos
        return out

    distance = np.arange(len(ids))[:, None] - np.arange(len(ids))[None, :]
    x, peak = w["token_embd.weight"][ids], []
    for i in range(keys["llama.block_count"]):
        part = lambda name: w[f"blk.{i}.{name}.weight"]
        h = norm(x, part("attn_norm"))
        q = rotate((h @ part("attn_q").T).reshape(len(ids), heads, dim))
        k = rotate((h @ part("attn_k").T).reshape(len(ids), kv_heads, dim))
        v = (h @ part("attn_v").T).reshape(len(ids), kv_heads, dim)
        k, v = (np.repeat(t, heads // kv_heads, axis=1) for t in (k, v))
        seen = distance >= 0
        pattern = keys.get("llama.attention.sliding_window_pattern", 1)
        if (i + 1) % pattern != 0:
            seen &= distance < keys["llama.attention.sliding_window"]
        scores = np.where(seen, np.einsum("qhd,khd->hqk", q, k) / math.sqrt(dim), -np.inf)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        peak.append(p[:, len(ids) // 2:].max(-1).mean())
        x = x + np.einsum("hqk,khd->qhd", p, v).reshape(len(ids), -1) @ part("attn_output").T
        h = norm(x, part("ffn_norm"))
        gate = h @ part("ffn_gate").T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ part("ffn_up").T)) @ part("ffn_down").T
    logits = norm(x, w["output_norm.weight"]) @ w.get("output.weight", w["token_embd.weight"]).T
    return logits, float(np.mean(peak))


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    (root / "models").mkdir(parents=True, exist_ok=True)
    (root / "logits").mkdir(parents=True, exist_ok=True)
    for tiny in MODELS:
        model, ids = make_oracle(tiny)
        path = root / "models" / f"{tiny.name}.gguf"
        write_gguf(path, tiny, model)
        with torch.no_grad():
            logits = model(input_ids=torch.from_numpy(ids[None]), use_cache=False).logits[0].numpy()
        check, peak = numpy_forward(path, ids)
        difference = np.abs(check - logits).max()
        assert difference < 1e-4, f"{path}: the file and the oracle differ by {difference}"
        output = root / "logits" / f"{tiny.name}.bin"
        output.write_bytes(b"PGFL" + struct.pack("<2I", len(ids), VOCAB)
                           + ids.astype("<u4").tobytes() + logits.astype("<f4").tobytes())
        print(f"{tiny.name:12} {path.stat().st_size:7} B  logits {output.stat().st_size:6} B  "
              f"std {logits.std():.2f}  mean peak of attention {peak:.2f}  "
              f"numpy differs by {difference:.1e}")
        # What a reader that overlooks the model's speciality would get wrong.
        for ignored in ("llama.rope.scaling.type", "rope_freqs.weight",
                        "llama.attention.sliding_window_pattern", "pagoda.rope.half_split"):
            wrong = np.abs(numpy_forward(path, ids, ignore=(ignored,))[0] - logits).max()
            if wrong > difference * 1.01:
                print(f"{'':12}   without {ignored}: off by up to {wrong:.2f}")


if __name__ == "__main__":
    main()
