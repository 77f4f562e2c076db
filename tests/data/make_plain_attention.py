#!/usr/bin/env python3
"""Writes plain_attention.txt: one attention head by numpy in float64, for the toy of KV cache tutorials.

    python make_plain_attention.py > plain_attention.txt        (needs numpy)

Lines of numbers: width and tokens; the weights of Q, K and V, [input][output]; the inputs, [token][width]; the
outputs, [token][width]. Weights and inputs are float32 values, which the text holds to the bit.
"""

import numpy as np

WIDTH, TOKENS = 24, 7


def softmax(rows):
    raised = np.exp(rows - rows.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def line(values):
    print(" ".join(repr(float(value)) for value in np.asarray(values).ravel()))


def main():
    draw = np.random.default_rng(11)
    weights = draw.normal(0, WIDTH**-0.5, (3, WIDTH, WIDTH)).astype(np.float32)
    inputs = draw.normal(0, 2, (TOKENS, WIDTH)).astype(np.float32)
    query, key, value = (inputs.astype(np.float64) @ matrix.astype(np.float64) for matrix in weights)
    scores = query @ key.T / np.sqrt(WIDTH)
    scores[np.triu_indices(TOKENS, 1)] = -np.inf
    print(WIDTH, TOKENS)
    line(weights)
    line(inputs)
    line(softmax(scores) @ value)


if __name__ == "__main__":
    main()
