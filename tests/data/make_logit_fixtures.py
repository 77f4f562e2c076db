#!/usr/bin/env python3
"""Writes what a real model says about WikiText-2: logits/smollm2_wikitext2.bin of
SmolLM2-135M-Instruct, or logits/gemma3_wikitext2.bin of Gemma 3 270M.

Nothing of Pagoda is used: weights are dequantised by the `gguf` package, text is cut by the
`tokenizers` package with what the model file has, and the forward pass is `transformers` in float32
with eager attention. The format is described in logits/README.md.

    python make_logit_fixtures.py smollm2|gemma3 MODEL.gguf wikitext2-test.txt [OUTPUT]

Needs torch, transformers, tokenizers, gguf, numpy; Gemma also accelerate. A few minutes on two
cores.
"""

import argparse
import pathlib
import struct

import numpy as np
import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

TOP = 128
BUCKETS = 64


def load_model(reader):
    """The GGUF's weights in a float32 transformers model, Q and K back in half-split order."""
    field = lambda key: reader.fields[key].contents()
    heads, kv_heads = field("llama.attention.head_count"), field("llama.attention.head_count_kv")
    config = LlamaConfig(
        vocab_size=field("llama.vocab_size"),
        hidden_size=field("llama.embedding_length"),
        intermediate_size=field("llama.feed_forward_length"),
        num_hidden_layers=field("llama.block_count"),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=field("llama.context_length"),
        rms_norm_eps=field("llama.attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": field("llama.rope.freq_base")},
        tie_word_embeddings=True,
        attn_implementation="eager",
    )
    assert "output.weight" not in {t.name for t in reader.tensors}, "expected a tied head"

    def half_split(rows, count):
        # [head, pair, 2, in] -> [head, 2, pair, in]
        shape = rows.shape
        pairs = rows.reshape(count, shape[0] // count // 2, 2, shape[1])
        return pairs.swapaxes(1, 2).reshape(shape)

    names = {
        "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
        "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
    }
    state = {}
    for tensor in reader.tensors:
        weight = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        weight = weight.reshape([int(n) for n in reversed(tensor.shape)])
        if tensor.name == "token_embd.weight":
            state["model.embed_tokens.weight"] = state["lm_head.weight"] = weight
            continue
        if tensor.name == "output_norm.weight":
            state["model.norm.weight"] = weight
            continue
        _, layer, part, _ = tensor.name.split(".")
        if part == "attn_q":
            weight = half_split(weight, heads)
        if part == "attn_k":
            weight = half_split(weight, kv_heads)
        state[f"model.layers.{layer}.{names[part]}.weight"] = weight
    model = LlamaForCausalLM(config).float().eval()
    result = model.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in state.items()})
    assert not result.missing_keys and not result.unexpected_keys
    return model


def load_tokenizer(reader):
    """Byte-level BPE as pre-tokeniser "smollm" asks: every digit alone, then GPT-2's pattern."""
    field = lambda key: reader.fields[key].contents()
    assert field("tokenizer.ggml.pre") == "smollm"
    vocabulary = {token: index for index, token in enumerate(field("tokenizer.ggml.tokens"))}
    merges = [tuple(merge.split(" ")) for merge in field("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\p{N}"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


class SmolLM2:
    name, windows, tokens = "smollm2", 4, 501  # 500 positions that each have a next token

    def __init__(self, path):
        reader = GGUFReader(path)
        self.tokenizer, self.model = load_tokenizer(reader), load_model(reader)

    def cut(self, text):
        """The text's tokens, and what begins every window."""
        ids = self.tokenizer.encode(text).ids
        assert self.tokenizer.decode(ids, skip_special_tokens=False) == text
        return ids, []


class Gemma3:
    """Read by transformers itself. The window is longer than the 512 tokens that most layers see."""
    name, windows, tokens = "gemma3", 1, 701

    def __init__(self, path):
        path = pathlib.Path(path)
        words = {"gguf_file": path.name}
        self.tokenizer = AutoTokenizer.from_pretrained(path.parent, **words)
        self.model = AutoModelForCausalLM.from_pretrained(
            path.parent, **words, dtype=torch.float32, attn_implementation="eager").eval()

    def cut(self, text):
        return (self.tokenizer(text, add_special_tokens=False).input_ids,
                [self.tokenizer.bos_token_id])


def log_probabilities(model, windows):
    """float64 [windows, positions, vocab], computed one window at a time."""
    with torch.no_grad():
        rows = [model(input_ids=torch.tensor(window[None, :-1]), use_cache=False).logits[0]
                for window in windows]
    return torch.log_softmax(torch.stack(rows).double(), dim=-1).numpy()


def summarise(log_probs):
    """Top list and tail buckets of [positions, vocab], in the precision of the file."""
    order = np.argsort(-log_probs, axis=-1, kind="stable")[:, :TOP]
    top = np.take_along_axis(log_probs, order, axis=-1)
    tail = np.exp(log_probs)
    np.put_along_axis(tail, order, 0.0, axis=-1)
    padding = -log_probs.shape[-1] % BUCKETS
    tail = np.pad(tail, ((0, 0), (0, padding))).reshape(len(tail), -1, BUCKETS).sum(axis=1)
    return order.astype("<u4"), top.astype("<f4"), tail.astype("<f4")


def bucketed_kl(summary, other):
    """KL(reference || other) over the cells of the file: how a test is expected to compute it."""
    order, top, tail = summary
    top, tail = top.astype(np.float64), tail.astype(np.float64)
    rest = np.exp(other)
    np.put_along_axis(rest, order.astype(np.int64), 0.0, axis=-1)
    rest = np.pad(rest, ((0, 0), (0, -rest.shape[-1] % BUCKETS)))
    rest = rest.reshape(len(rest), -1, BUCKETS).sum(axis=1)
    head = np.exp(top) * (top - np.take_along_axis(other, order.astype(np.int64), axis=-1))
    return head.sum(axis=-1) + (tail * np.log(np.maximum(tail, 1e-300) / rest)).sum(axis=-1)


def compare(name, reference, other, summary):
    flat = reference.reshape(-1, reference.shape[-1])
    other = other.reshape(flat.shape)
    full = (np.exp(flat) * (flat - other)).sum(axis=-1)
    cells = bucketed_kl(summary, other)
    agree = (flat.argmax(-1) == other.argmax(-1)).mean()
    scaled = cells / (1.0 - summary[2].sum(axis=-1, dtype=np.float64))
    print(f"  {name:30} top-1 {agree:.2%}  mean KL {full.mean():.4e} (max {full.max():.2e})  "
          f"cells {cells.mean() / full.mean():.4f} of it, "
          f"cells / (1 - tail mass) {scaled.mean() / full.mean():.4f} of it")


def with_rounded_kv(model, dtype):
    """Rounds V, and K before rotation, through `dtype`; returns the hooks to remove."""
    rounded = lambda module, inputs, output: output.to(dtype).float()
    attentions = [layer.self_attn for layer in model.model.layers]
    parts = [a.k_proj for a in attentions] + [a.v_proj for a in attentions]
    return [part.register_forward_hook(rounded) for part in parts]


def main():
    here = pathlib.Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = {kind.name: kind for kind in (SmolLM2, Gemma3)}
    parser.add_argument("kind", choices=kinds)
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("output", nargs="?")
    arguments = parser.parse_args()
    output = arguments.output or here / "logits" / f"{arguments.kind}_wikitext2.bin"
    torch.set_num_threads(2)

    loaded = kinds[arguments.kind](arguments.model)
    count, tokens, model = loaded.windows, loaded.tokens, loaded.model
    ids, begin = loaded.cut(pathlib.Path(arguments.text).read_text(encoding="utf-8"))
    starts = [len(ids) * w // count for w in range(count)]
    windows = np.array([(begin + ids[start:start + tokens])[:tokens] for start in starts])
    print(f"{len(ids)} tokens in the text, windows start at tokens {starts}")

    reference = log_probabilities(model, windows)
    vocab = reference.shape[-1]
    flat = reference.reshape(-1, vocab)
    summary = summarise(flat)
    with open(output, "wb") as file:
        file.write(b"PGLF" + struct.pack("<6I", 1, count, tokens, TOP, BUCKETS, vocab))
        for window in windows:
            file.write(window.astype("<u4").tobytes())
        for order, top, tail in zip(*summary):
            file.write(order.tobytes() + top.tobytes() + tail.tobytes())

    next_ids = windows[:, 1:].reshape(-1, 1)
    nll = -np.take_along_axis(flat, next_ids, axis=-1)
    top_two = summary[1][:, :2].astype(np.float64)
    print(f"positions {len(flat)}  perplexity {np.exp(nll.mean()):.4f}  "
          f"mean top-1 probability {np.exp(top_two[:, 0]).mean():.4f}  "
          f"top-1 is the next token {(summary[0][:, :1] == next_ids).mean():.2%}")
    for window in range(count):
        part = nll.reshape(count, -1)[window]
        print(f"  window {window}: perplexity {np.exp(part.mean()):.4f}")
    margin = top_two[:, 0] - top_two[:, 1]
    print(f"  top-1 margin in nats: smallest {margin.min():.2e}, "
          f"below 1e-3: {(margin < 1e-3).sum()}, below 1e-2: {(margin < 1e-2).sum()}")
    print(f"  mean tail mass {summary[2].sum(axis=-1).mean():.4f}")

    print("perturbed copies of the same model, full KL against KL over the cells of the file:")
    for dtype in (torch.float16, torch.bfloat16, torch.float8_e4m3fn):
        hooks = with_rounded_kv(model, dtype)
        other = log_probabilities(model, windows)
        compare(f"K and V through {str(dtype)[6:]}", reference, other, summary)
        for hook in hooks:
            hook.remove()
    model.bfloat16()
    compare("whole model in bfloat16", reference, log_probabilities(model, windows), summary)


if __name__ == "__main__":
    main()
