#!/usr/bin/env python3
"""Writes kvpress/scores.txt: which attention the tokens of a prompt got, by NVIDIA's kvpress.

The models are those of models/hf_*, run by transformers in float32 with eager attention. Nothing of
Pagoda is used. ObservedAttention's division by the age of a token is undone, and so is the padding
of SnapKV's window.

    python make_kvpress_fixtures.py [DIRECTORY]      (default: the folder of this script)

Needs kvpress, torch, transformers. Seconds.

    model NAME                  a folder of models/
    tokens T…                   a prompt
    observed                    what follows are sums over all queries, the mean of a KV head's queries
    snapkv WINDOW KERNEL        ... SnapKVPress's scores, of the tokens before the window
    score LAYER HEAD S…         of one KV head, token by token
"""

import dataclasses
import pathlib
import random
import sys

import torch
import transformers
from kvpress import ObservedAttentionPress, SnapKVPress

MODELS = ["hf_llama", "hf_qwen3", "hf_qwen2"]
TOKENS = 90
WINDOWS = [(8, 1), (16, 5), (31, 7)]


class Recorder:
    """Keeps the scores of every layer."""

    def score(self, module, *args, **kwargs):
        scores = super().score(module, *args, **kwargs)
        self.scores[module.layer_idx] = scores[0].clone()
        return scores


@dataclasses.dataclass
class RecordedSnapKV(Recorder, SnapKVPress):
    scores: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class RecordedAttention(Recorder, ObservedAttentionPress):
    scores: dict = dataclasses.field(default_factory=dict)


def record(model, tokens, press):
    with torch.no_grad(), press(model):
        model(torch.tensor([tokens]), past_key_values=transformers.DynamicCache())
    return [press.scores[layer] for layer in sorted(press.scores)]


def write_scores(out, layers):
    for layer, heads in enumerate(layers):
        for head, scores in enumerate(heads):
            print("score", layer, head, *(f"{s:.9g}" for s in scores.tolist()), file=out)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    dice = random.Random(23)
    (folder / "kvpress").mkdir(exist_ok=True)
    with open(folder / "kvpress" / "scores.txt", "w") as out:
        for name in MODELS:
            model = transformers.AutoModelForCausalLM.from_pretrained(
                folder / "models" / name, dtype=torch.float32, attn_implementation="eager")
            tokens = [dice.randrange(model.config.vocab_size) for _ in range(TOKENS)]
            print("model", name, file=out)
            print("tokens", *tokens, file=out)
            ages = torch.arange(TOKENS, 0, -1)
            print("observed", file=out)
            layers = record(model, tokens, RecordedAttention(compression_ratio=0.5))
            write_scores(out, [scores * ages for scores in layers])
            for window, kernel in WINDOWS:
                print("snapkv", window, kernel, file=out)
                press = RecordedSnapKV(0.5, window_size=window, kernel_size=kernel)
                write_scores(out, [s[:, :-window] for s in record(model, tokens, press)])


main()
