#!/usr/bin/env python3
"""Writes models/arch_*.gguf and logits/arch_*.bin: a small random model of every architecture beside
llama, and its logits.

The models are made and run by `transformers` (float64 weights and products, eager attention) and
written by the `gguf` package with the names and orders of llama.cpp's converter; nothing of Pagoda
is used. Prompts are longer than windows and than the context before rope scaling. Formats:
logits/README.md.

    python make_architecture_models.py [DIRECTORY [NAME…]]   (the folder of this script; all)

Needs torch, transformers, gguf, numpy. A minute or two.
"""

import copy
import dataclasses
import math
import pathlib
import struct
import sys

import gguf
import numpy as np
import torch
import transformers

VOCAB = 96
EMBD, HEADS, KV_HEADS, HEAD_DIM, FFN = 64, 4, 2, 16, 96
WINDOW = 24
TOKENS = 120
# What the last expert that a token chooses is ahead of the first that it does not, at least, in
# standard deviations of router logits: less, and rounding to bfloat16 may choose another.
MARGIN_MIN = 0.015
# Names of tensors in transformers and in GGUF files; what an architecture calls differently is its own.
NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "self_attn.qkv_proj": "attn_qkv",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "mlp.gate_up_proj": "ffn_up",
}
OUTPUT_NORMS = {"post_attention_layernorm": "post_attention_norm",
                "post_feedforward_layernorm": "post_ffw_norm"}
SHARED = {f"mlp.shared_expert.{part}_proj": f"ffn_{part}_shexp" for part in ("gate", "up", "down")}
# Latents of 32, 8 dimensions of a head rotate and 16 do not, values of 20.
LATENT = {"num_key_value_heads": HEADS, "head_dim": 8, "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 20}
LATENT_KEYS = {"attention.kv_lora_rank": 32, "rope.dimension_count": 8}
# The same with 16 that rotate: rows of 48 values, which fp8 keeps in whole 16 bytes.
WIDER_LATENT = {**LATENT, "head_dim": 16, "qk_rope_head_dim": 16}
WIDER_LATENT_KEYS = {**LATENT_KEYS, "rope.dimension_count": 16}
LATENT_NAMES = {"self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_layernorm": "attn_q_a_norm",
                "self_attn.q_b_proj": "attn_q_b", "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa",
                "self_attn.kv_a_layernorm": "attn_kv_a_norm", "self_attn.kv_b_proj": "attn_kv_b",
                "mlp.gate": "ffn_gate_inp",
                **{f"mlp.shared_experts.{part}_proj": f"ffn_{part}_shexp"
                   for part in ("gate", "up", "down")}}
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
        "original_max_position_embeddings": 32}


def kinds(layers, full_every):
    return ["full_attention" if (i + 1) % full_every == 0 else "sliding_attention"
            for i in range(layers)]


GEMMA4 = {"sliding_window": WINDOW, "global_head_dim": 32, "hidden_size_per_layer_input": 0,
          "vocab_size_per_layer_input": 0, "hidden_activation": "gelu_pytorch_tanh",
          "final_logit_softcapping": 5.0}
GEMMA4_KEYS = {"attention.sliding_window": WINDOW, "attention.key_length": 32,
               "attention.value_length": 32, "attention.key_length_swa": HEAD_DIM,
               "attention.value_length_swa": HEAD_DIM, "rope.dimension_count": 32,
               "rope.dimension_count_swa": HEAD_DIM, "rope.freq_base_swa": 10000.0,
               "embedding_length_per_layer_input": 0, "final_logit_softcapping": 5.0}
GEMMA4_NAMES = {**OUTPUT_NORMS, "pre_feedforward_layernorm": "ffn_norm",
                "post_feedforward_layernorm_1": "post_ffw_norm_1",
                "post_feedforward_layernorm_2": "post_ffw_norm_2",
                "pre_feedforward_layernorm_2": "pre_ffw_norm_2", "router.proj": "ffn_gate_inp"}
PROPORTIONAL = {"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
                                   "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}


@dataclasses.dataclass
class Model:
    name: str            # of the files, after "arch_"
    architecture: str    # general.architecture
    family: str          # of the classes in transformers
    seed: int
    config: dict = dataclasses.field(default_factory=dict)  # beside what all have
    keys: dict = dataclasses.field(default_factory=dict)    # metadata beside what all have
    names: dict = dataclasses.field(default_factory=dict)   # tensors called differently
    layers: int = 2
    rope: dict = dataclasses.field(default_factory=lambda: dict(ROPE))
    adjacent: bool = False       # the file holds Q and K for adjacent pairs
    norms_plus_one: bool = False  # transformers multiplies by 1 + weight, the file holds that sum
    prefix: str = "Config"
    experts: str = ""            # how the file holds experts: "stacked", "fused" or "apart"
    fp4: bool = False            # experts are MXFP4, else float16
    tokens: int = TOKENS         # of the prompt
    latent: str = ""             # how the file holds latents' heads: "apart" or "together"


MODELS = [
    Model("qwen2", "qwen2", "Qwen2", 11),
    Model("qwen3", "qwen3", "Qwen3", 12),
    Model("gemma3", "gemma3", "Gemma3", 13, layers=7, norms_plus_one=True, prefix="TextConfig",
          config={"sliding_window": WINDOW, "layer_types": kinds(7, 6),
                  "query_pre_attn_scalar": HEAD_DIM, "hidden_activation": "gelu_pytorch_tanh"},
          rope={"full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}},
          keys={"attention.sliding_window": WINDOW},
          names={**OUTPUT_NORMS, "pre_feedforward_layernorm": "ffn_norm"}),
    Model("phi3", "phi3", "Phi3", 14, config={"pad_token_id": 0}),
    Model("phi3_partial", "phi3", "Phi3", 15, config={"sliding_window": WINDOW, "pad_token_id": 0},
          rope={**ROPE, "partial_rotary_factor": 0.75},
          keys={"attention.sliding_window": WINDOW, "rope.dimension_count": HEAD_DIM * 3 // 4}),
    Model("phi3_longrope", "phi3", "Phi3", 30,
          config={"pad_token_id": 0, "original_max_position_embeddings": 32},
          rope={"rope_type": "longrope", "rope_theta": 10000.0,
                "short_factor": [1.0 + 0.05 * i for i in range(8)],
                "long_factor": [1.0 + 0.7 * i for i in range(8)],
                "original_max_position_embeddings": 32},
          keys={"rope.scaling.original_context_length": 32,
                "rope.scaling.attn_factor": math.sqrt(1 + math.log(64) / math.log(32))}),
    Model("granite", "granite", "Granite", 16, adjacent=True,
          config={"embedding_multiplier": 3.0, "attention_multiplier": 0.4,
                  "residual_multiplier": 0.5, "logits_scaling": 1.25},
          keys={"embedding_scale": 3.0, "attention.scale": 0.4, "residual_scale": 0.5,
                "logit_scale": 1.25}),
    Model("olmo2", "olmo2", "Olmo2", 17, names=OUTPUT_NORMS),
    Model("olmo3", "olmo2", "Olmo3", 18, layers=5, names=OUTPUT_NORMS,
          rope={"full_attention": YARN, "sliding_attention": ROPE},
          config={"sliding_window": WINDOW, "layer_types": kinds(5, 4)},
          keys={"attention.sliding_window": WINDOW}),
    Model("smollm3", "smollm3", "SmolLM3", 19, layers=5, adjacent=True,
          config={"no_rope_layers": [1, 1, 1, 0, 1], "use_sliding_window": False,
                  "pad_token_id": 0}),
    Model("glm4", "glm4", "Glm4", 20, config={"attention_bias": True, "pad_token_id": 0},
          rope={**ROPE, "partial_rotary_factor": 0.5},
          keys={"rope.dimension_count": HEAD_DIM // 2},
          names={"post_self_attn_layernorm": "post_attention_norm",
                 "post_mlp_layernorm": "post_ffw_norm"}),
    Model("exaone4", "exaone4", "Exaone4", 21, layers=5, names=OUTPUT_NORMS,
          config={"sliding_window": WINDOW, "sliding_window_pattern": 4,
                  "layer_types": kinds(5, 4)},
          keys={"attention.sliding_window": WINDOW}),
    Model("gemma2", "gemma2", "Gemma2", 28, layers=3, norms_plus_one=True,
          config={"sliding_window": WINDOW, "layer_types": kinds(3, 2), "query_pre_attn_scalar": 20,
                  "hidden_activation": "gelu_pytorch_tanh", "attn_logit_softcapping": 4.0,
                  "final_logit_softcapping": 5.0},
          keys={"attention.sliding_window": WINDOW, "attention.scale": 20.0 ** -0.5,
                "attn_logit_softcapping": 4.0, "final_logit_softcapping": 5.0},
          names={**OUTPUT_NORMS, "pre_feedforward_layernorm": "ffn_norm"}),
    Model("mistral3", "mistral3", "Ministral3", 29, adjacent=True, config={"sliding_window": None},
          rope={**YARN, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.3,
                "beta_fast": 32.0, "beta_slow": 1.0},
          keys={"attention.temperature_scale": 0.3, "rope.scaling.yarn_log_multiplier": 1.0}),
    Model("mixtral", "llama", "Mixtral", 23, adjacent=True, experts="apart", tokens=48,
          config={"num_local_experts": 5, "num_experts_per_tok": 2, "sliding_window": None},
          keys={"expert_count": 5, "expert_used_count": 2},
          names={"mlp.gate": "ffn_gate_inp"}),
    Model("qwen2moe", "qwen2moe", "Qwen2Moe", 24, experts="stacked", tokens=48,
          config={"moe_intermediate_size": 48, "shared_expert_intermediate_size": 80,
                  "num_experts": 6, "num_experts_per_tok": 3},
          keys={"expert_count": 6, "expert_used_count": 3, "expert_feed_forward_length": 48,
                "expert_shared_feed_forward_length": 80},
          names={**SHARED, "mlp.gate": "ffn_gate_inp",
                 "mlp.shared_expert_gate": "ffn_gate_inp_shexp"}),
    Model("qwen3moe", "qwen3moe", "Qwen3Moe", 25, experts="stacked", tokens=48,
          config={"moe_intermediate_size": 48, "num_experts": 9, "num_experts_per_tok": 4,
                  "norm_topk_prob": True, "mlp_only_layers": [], "decoder_sparse_step": 1},
          keys={"expert_count": 9, "expert_used_count": 4, "expert_feed_forward_length": 48},
          names={"mlp.gate": "ffn_gate_inp"}),
    Model("granitemoe", "granitemoe", "GraniteMoeShared", 26, adjacent=True, experts="fused", tokens=48,
          config={"embedding_multiplier": 3.0, "attention_multiplier": 0.4,
                  "residual_multiplier": 0.5, "logits_scaling": 1.25, "num_local_experts": 4,
                  "num_experts_per_tok": 2, "shared_intermediate_size": 80},
          keys={"embedding_scale": 3.0, "attention.scale": 0.4, "residual_scale": 0.5,
                "logit_scale": 1.25, "expert_count": 4, "expert_used_count": 2,
                "expert_shared_feed_forward_length": 80},
          names={"block_sparse_moe.router": "ffn_gate_inp",
                 "shared_mlp.input_linear": "ffn_up_shexp",
                 "shared_mlp.output_linear": "ffn_down_shexp"}),
    Model("gpt_oss", "gpt-oss", "GptOss", 27, experts="stacked", fp4=True, tokens=48,
          config={"num_local_experts": 6, "num_experts_per_tok": 2, "sliding_window": WINDOW},
          rope={**YARN, "rope_theta": 150000.0, "factor": 8.0, "truncate": False},
          keys={"attention.sliding_window": WINDOW, "expert_count": 6, "expert_used_count": 2,
                "expert_feed_forward_length": FFN},
          names={"mlp.router": "ffn_gate_inp",
                 "post_attention_layernorm": "post_attention_norm"}),
    Model("deepseek2", "deepseek2", "DeepseekV2", 31, layers=2, experts="stacked", tokens=48,
          latent="together",
          config={**LATENT, "q_lora_rank": None, "n_routed_experts": 6, "num_experts_per_tok": 2,
                  "moe_intermediate_size": 48, "n_shared_experts": 2, "first_k_dense_replace": 1,
                  "routed_scaling_factor": 1.5, "topk_method": "greedy", "norm_topk_prob": False},
          keys={**LATENT_KEYS, "attention.key_length": 24, "attention.value_length": 20,
                "attention.head_count_kv": HEADS, "leading_dense_block_count": 1,
                "expert_count": 6, "expert_used_count": 2, "expert_feed_forward_length": 48,
                "expert_shared_count": 2, "expert_weights_scale": 1.5},
          names=LATENT_NAMES),
    # As DeepSeek V2 is published: two of four groups, each judged by its best expert, and yarn's mscale.
    Model("deepseek2_groups", "deepseek2", "DeepseekV2", 101, layers=2, experts="stacked", tokens=48,
          latent="together",
          rope={**YARN, "mscale": 0.707, "mscale_all_dim": 0.707, "beta_fast": 32.0, "beta_slow": 1.0},
          config={**LATENT, "q_lora_rank": 40, "n_routed_experts": 8, "num_experts_per_tok": 3,
                  "moe_intermediate_size": 48, "n_shared_experts": 2, "first_k_dense_replace": 1,
                  "routed_scaling_factor": 3.0, "topk_method": "group_limited_greedy", "n_group": 4,
                  "topk_group": 2, "norm_topk_prob": False},
          keys={**LATENT_KEYS, "attention.q_lora_rank": 40, "attention.key_length": 24,
                "attention.value_length": 20, "attention.head_count_kv": HEADS,
                "leading_dense_block_count": 1, "expert_count": 8, "expert_used_count": 3,
                "expert_feed_forward_length": 48, "expert_shared_count": 2,
                "expert_weights_scale": 3.0, "expert_group_count": 4, "expert_group_used_count": 2,
                "rope.scaling.yarn_log_multiplier": 0.0707},
          names=LATENT_NAMES),
    Model("deepseek3", "deepseek2", "DeepseekV3", 32, layers=2, experts="stacked", tokens=48,
          latent="apart",
          rope={**YARN, "mscale": 1.0, "mscale_all_dim": 1.0, "beta_fast": 32.0, "beta_slow": 1.0},
          config={**LATENT, "q_lora_rank": 40, "n_routed_experts": 8, "num_experts_per_tok": 3,
                  "moe_intermediate_size": 48, "n_shared_experts": 1, "first_k_dense_replace": 1,
                  "routed_scaling_factor": 2.5, "n_group": 4, "topk_group": 2,
                  "norm_topk_prob": True},
          keys={**LATENT_KEYS, "attention.q_lora_rank": 40, "attention.head_count_kv": 1,
                "attention.key_length": 40, "attention.value_length": 32,
                "attention.key_length_mla": 24, "attention.value_length_mla": 20,
                "leading_dense_block_count": 1, "expert_count": 8, "expert_used_count": 3,
                "expert_feed_forward_length": 48, "expert_shared_count": 1,
                "expert_weights_scale": 2.5, "expert_weights_norm": True, "expert_gating_func": 2,
                "expert_group_count": 4, "expert_group_used_count": 2,
                "rope.scaling.yarn_log_multiplier": 0.1},
          names=LATENT_NAMES),
    Model("deepseek3_fp8", "deepseek2", "DeepseekV3", 37, layers=2, experts="stacked", tokens=48,
          latent="apart",
          rope={**YARN, "mscale": 1.0, "mscale_all_dim": 1.0, "beta_fast": 32.0, "beta_slow": 1.0},
          config={**WIDER_LATENT, "q_lora_rank": 40, "n_routed_experts": 8, "num_experts_per_tok": 3,
                  "moe_intermediate_size": 48, "n_shared_experts": 1, "first_k_dense_replace": 1,
                  "routed_scaling_factor": 2.5, "n_group": 4, "topk_group": 2,
                  "norm_topk_prob": True},
          keys={**WIDER_LATENT_KEYS, "attention.q_lora_rank": 40, "attention.head_count_kv": 1,
                "attention.key_length": 48, "attention.value_length": 32,
                "attention.key_length_mla": 32, "attention.value_length_mla": 20,
                "leading_dense_block_count": 1, "expert_count": 8, "expert_used_count": 3,
                "expert_feed_forward_length": 48, "expert_shared_count": 1,
                "expert_weights_scale": 2.5, "expert_weights_norm": True, "expert_gating_func": 2,
                "expert_group_count": 4, "expert_group_used_count": 2,
                "rope.scaling.yarn_log_multiplier": 0.1},
          names=LATENT_NAMES),
    Model("glm47_flash", "deepseek2", "Glm4MoeLite", 33, layers=2, experts="stacked", tokens=48,
          latent="apart",
          config={**LATENT, "q_lora_rank": 40, "n_routed_experts": 6, "num_experts_per_tok": 2,
                  "moe_intermediate_size": 48, "n_shared_experts": 1,
                  "mlp_layer_types": ["dense", "sparse"], "routed_scaling_factor": 1.8,
                  "n_group": 1, "topk_group": 1, "norm_topk_prob": True},
          keys={**LATENT_KEYS, "attention.q_lora_rank": 40, "attention.head_count_kv": 1,
                "attention.key_length": 40, "attention.value_length": 32,
                "attention.key_length_mla": 24, "attention.value_length_mla": 20,
                "leading_dense_block_count": 1, "expert_count": 6, "expert_used_count": 2,
                "expert_feed_forward_length": 48, "expert_shared_count": 1,
                "expert_weights_scale": 1.8, "expert_weights_norm": True, "expert_gating_func": 2},
          names=LATENT_NAMES),
    # Larger heads, one KV head and no values of their own in layers that see all keys.
    Model("gemma4", "gemma4", "Gemma4", 34, layers=4, prefix="TextConfig", rope=PROPORTIONAL,
          config={**GEMMA4, "layer_types": kinds(4, 2), "attention_k_eq_v": True,
                  "num_global_key_value_heads": 1},
          keys={**GEMMA4_KEYS, "attention.sliding_window_pattern": [True, False] * 2,
                "attention.head_count_kv": [KV_HEADS, 1] * 2},
          names=GEMMA4_NAMES),
    # The last two layers attend to the rows of earlier ones.
    Model("gemma4_shared", "gemma4", "Gemma4", 35, layers=6, prefix="TextConfig", rope=PROPORTIONAL,
          config={**GEMMA4, "layer_types": kinds(6, 2), "num_kv_shared_layers": 2},
          keys={**GEMMA4_KEYS, "attention.sliding_window_pattern": [True, False] * 3,
                "attention.head_count_kv": [KV_HEADS] * 6, "attention.shared_kv_layers": 2},
          names=GEMMA4_NAMES),
    Model("gemma4_moe", "gemma4", "Gemma4", 36, layers=2, prefix="TextConfig", rope=PROPORTIONAL,
          experts="fused", tokens=48,
          config={**GEMMA4, "layer_types": kinds(2, 2), "enable_moe_block": True, "num_experts": 6,
                  "top_k_experts": 2, "moe_intermediate_size": 48},
          keys={**GEMMA4_KEYS, "attention.sliding_window_pattern": [True, False],
                "attention.head_count_kv": [KV_HEADS] * 2, "expert_count": 6,
                "expert_used_count": 2, "expert_feed_forward_length": 48},
          names=GEMMA4_NAMES),
    Model("exaone4_full", "exaone4", "Exaone4", 22, names=OUTPUT_NORMS,
          config={"sliding_window": None, "sliding_window_pattern": None,
                  "layer_types": ["full_attention"] * 2}),
]


def random_fp4(rng, shape, spread):
    """Codes and exponents of MXFP4, blocks of 32 along the last axis, and what they stand for."""
    codes = rng.integers(0, 16, shape)
    blocks = shape[:-1] + (shape[-1] // 32,)
    exponents = np.floor(np.log2(spread / 3)).astype(int) + rng.integers(-2, 2, blocks)
    values = FP4[codes] * np.repeat(2.0 ** exponents, 32, axis=-1)
    return codes, exponents, values


def fp4_bytes(codes, exponents):
    """[…, blocks * 17]: a block is its exponent + 127 and 16 bytes, byte i of codes i and i + 16."""
    pairs = codes.reshape(*exponents.shape, 2, 16).astype(np.uint8)
    packed = pairs[..., 0, :] | pairs[..., 1, :] << 4
    block = np.concatenate([(exponents + 127).astype(np.uint8)[..., None], packed], axis=-1)
    return block.reshape(*exponents.shape[:-1], -1)


def make_fp4_experts(rng, name, shape):
    """Weights of all experts as gpt-oss holds them, [expert, in, out]; codes by part of the file,
    [expert, out, in]."""
    experts, inputs, outputs = shape
    spread = (6.0 if "gate_up" in name else 2.0) / math.sqrt(inputs)
    codes, exponents, values = random_fp4(rng, (experts, outputs, inputs), spread)
    whole = {"down": slice(None)} if "down" in name else {"gate": slice(0, None, 2),
                                                          "up": slice(1, None, 2)}
    parts = {part: fp4_bytes(codes[:, rows], exponents[:, rows]) for part, rows in whole.items()}
    return values.swapaxes(1, 2), parts


def find_oracle(made):
    """make_oracle() with the first seed that leaves no token in doubt about its experts."""
    while True:
        model, ids, fp4 = make_oracle(made)
        logits, margin = run(model, ids)
        if margin > MARGIN_MIN:
            return model, ids, fp4, logits
        made.seed += 1000


def run(model, ids):
    """All logits, and the smallest margin of all routers."""
    margins = [math.inf]

    def gap(scores, chosen):
        ranked = scores.sort(-1, descending=True).values
        return float((ranked[:, chosen - 1] - ranked[:, chosen]).min() / scores.std())

    def look(router, inputs, _):
        config = model.config
        chosen = getattr(config, "top_k_experts", None) or config.num_experts_per_tok
        scores = torch.nn.functional.linear(inputs[0].reshape(-1, EMBD), router.weight,
                                            getattr(router, "bias", None))
        biased = hasattr(router, "e_score_correction_bias")
        if biased or getattr(config, "topk_method", "") == "group_limited_greedy":
            if biased:
                scores = scores.sigmoid() + router.e_score_correction_bias
            grouped = scores.reshape(len(scores), config.n_group, -1)
            groups = grouped.topk(2 if biased else 1, -1).values.sum(-1)
            if config.topk_group < config.n_group:
                margins.append(gap(groups, config.topk_group))
            kept = torch.zeros_like(groups).scatter(1, groups.topk(config.topk_group).indices, 1)
            inside = grouped[kept.bool()].reshape(len(scores), -1)
            margins.append(gap(inside, chosen))
        else:
            margins.append(gap(scores, chosen))

    for name, module in model.named_modules():
        if name.endswith(("mlp.gate", "mlp.router", "router.proj", "block_sparse_moe.router")):
            module.register_forward_hook(look)
    with torch.no_grad():
        logits = model(torch.from_numpy(ids)[None]).logits[0].numpy()
    return logits, min(margins)


def make_oracle(made):
    """A transformers model with seeded weights, already rounded to what the file will hold."""
    fields = {
        "vocab_size": VOCAB, "hidden_size": EMBD, "intermediate_size": FFN,
        "num_hidden_layers": made.layers, "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM, "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-5, "tie_word_embeddings": made.seed % 2 == 0,
        "rope_parameters": copy.deepcopy(made.rope), "attn_implementation": "eager"}
    if made.experts:
        fields["experts_implementation"] = "eager"
    config = getattr(transformers, made.family + made.prefix)(**{**fields, **made.config})
    model = getattr(transformers, made.family + "ForCausalLM")(config).double().eval()
    rng = np.random.default_rng(made.seed)
    # Scores get a standard deviation near 2, logits one between 1 and 3.
    gain = {"q_proj": 1.6, "k_proj": 1.3, "o_proj": 1.4, "gate_proj": 1.2, "down_proj": 1.2,
            "qkv_proj": 1.3, "gate_up_proj": 1.1, "embed_tokens": 2.0, "lm_head": 2.0,
            "gate": 2.0, "router": 2.0}
    fp4 = {}
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if made.fp4 and weight.ndim == 3:
                values, fp4[name] = make_fp4_experts(rng, name, weight.shape)
            elif name.endswith("bias"):
                values = rng.normal(0.0, 0.3, weight.shape).astype(np.float32)
            elif name.endswith("sinks"):
                values = rng.normal(0.0, 1.5, weight.shape).astype(np.float32)
            elif weight.ndim == 1:
                low = -0.4 if made.norms_plus_one else 0.6
                values = rng.uniform(low, low + 0.8, weight.shape).astype(np.float32)
            else:
                spread = gain.get(name.split(".")[-2], 1.0) / math.sqrt(weight.shape[-1])
                values = rng.normal(0.0, spread, weight.shape).astype(np.float16)
            weight.copy_(torch.from_numpy(values.astype(np.float64)))
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                values = rng.normal(0.0, 0.2, buffer.shape).astype(np.float32)
                buffer.copy_(torch.from_numpy(values))
            if name.endswith("layer_scalar"):
                buffer.fill_(float(np.float32(rng.uniform(0.6, 1.4))))
    return model, rng.integers(3, VOCAB, made.tokens), fp4


def adjacent_pairs(rows, heads):
    """[head, 2, pair, …] -> [head, pair, 2, …]: the converter's permutation of Q and K."""
    shape = rows.shape
    return rows.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def write_keys(writer, made):
    writer.add_name("arch_" + made.name)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_context_length(2048)
    writer.add_embedding_length(EMBD)
    writer.add_block_count(made.layers)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    if "attention.head_count_kv" not in made.keys:
        writer.add_head_count_kv(KV_HEADS)
        writer.add_key_length(HEAD_DIM)
        writer.add_value_length(HEAD_DIM)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCAB)
    rope = made.rope.get("full_attention", made.rope)
    writer.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] not in ("default", "longrope", "proportional"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "yarn":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    for key, value in made.keys.items():
        add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32,
               list: writer.add_array}[type(value)]
        add(f"{made.architecture}.{key}", value)
    writer.add_tokenizer_model("llama")
    words = ["<unk>", "<s>", "</s>"] + [chr(c) for c in range(0x21, 0x7F)]
    writer.add_token_list(words[:VOCAB])
    writer.add_token_scores([0.0] * 3 + [-float(i) for i in range(VOCAB - 3)])
    writer.add_token_types([gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
                           + [gguf.TokenType.NORMAL] * (VOCAB - 3))
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)


def add_experts(writer, made, name, values, fp4):
    """gate_up_proj or down_proj of all experts of a layer, or their biases."""
    block = "blk." + name.split(".")[2]
    end = "bias" if name.endswith("_bias") else "weight"
    if fp4:
        for part, data in fp4.items():
            writer.add_tensor(f"{block}.ffn_{part}_exps.weight", data,
                              raw_dtype=gguf.GGMLQuantizationType.MXFP4)
        return
    values = values.astype(np.float32 if end == "bias" else np.float16)
    if "down_proj" in name:
        parts = {"down": values}
    elif made.experts == "fused":
        parts = {"gate_up": values}
    elif made.family == "GptOss":
        parts = {"gate": values[:, ::2], "up": values[:, 1::2]}
    else:
        gate, up = np.split(values, 2, axis=1)
        parts = {"gate": gate, "up": up}
    for part, stacked in parts.items():
        if made.experts == "apart":
            for i, one in enumerate(stacked):
                writer.add_tensor(f"{block}.ffn_{part}.{i}.{end}", np.ascontiguousarray(one))
        else:
            writer.add_tensor(f"{block}.ffn_{part}_exps.{end}", np.ascontiguousarray(stacked))


def add_latent_heads(writer, place, values):
    """kv_b as the converter splits it: keys [head, rank, plain], values [head, value, rank]."""
    plain = LATENT["qk_nope_head_dim"]
    heads = values.reshape(HEADS, -1, LATENT["kv_lora_rank"]).astype(np.float16)
    keys = np.ascontiguousarray(heads[:, :plain].swapaxes(1, 2))
    writer.add_tensor(place.replace("kv_b", "k_b"), keys)
    writer.add_tensor(place.replace("kv_b", "v_b"), np.ascontiguousarray(heads[:, plain:]))


def gguf_name(made, name):
    for end, place in (("self_attn.sinks", "attn_sinks.weight"), ("router.scale", "ffn_gate_inp.scale"),
                       ("router.per_expert_scale", "ffn_down_exps.scale")):
        if name.endswith(end):
            return name.replace(end, place).replace("model.layers", "blk")
    base, end = name.rsplit(".", 1)
    names = {**NAMES, **made.names}
    if base in names:
        return f"{names[base]}.{end}"
    _, _, layer, part = base.split(".", 3)
    return f"blk.{layer}.{names[part]}.{end}"


def write_gguf(path, made, model, fp4):
    writer = gguf.GGUFWriter(path, made.architecture)
    write_keys(writer, made)
    for name, weight in model.named_parameters():
        values = weight.detach().numpy()
        if ".experts." in name:
            add_experts(writer, made, name, values, fp4.get(name))
            continue
        place = gguf_name(made, name)
        if made.latent == "apart" and ".attn_kv_b." in place:
            add_latent_heads(writer, place, values)
            continue
        if made.norms_plus_one and "norm" in place:
            values = values + 1.0
        if made.adjacent and ".attn_q." in place:
            values = adjacent_pairs(values, HEADS)
        if made.adjacent and ".attn_k." in place:
            values = adjacent_pairs(values, KV_HEADS)
        writer.add_tensor(place, values.astype(np.float16 if values.ndim == 2 else np.float32))
    for name, buffer in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            layer = name.split(".")[2]
            writer.add_tensor(f"blk.{layer}.exp_probs_b.bias", buffer.numpy().astype(np.float32))
        if name.endswith("layer_scalar"):
            layer = name.split(".")[2]
            writer.add_tensor(f"blk.{layer}.layer_output_scale.weight", buffer.numpy().astype(np.float32))
    if made.rope.get("full_attention", {}).get("rope_type") == "proportional":
        divisors = np.full(16, 1e30, np.float32)  # of pairs of a head of 32
        divisors[:4] = 1
        writer.add_tensor("rope_freqs.weight", divisors)
    for kind in ("short", "long"):
        if f"{kind}_factor" in made.rope:
            writer.add_tensor(f"rope_factors_{kind}.weight",
                              np.array(made.rope[f"{kind}_factor"], np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_logits(path, ids, logits):
    with open(path, "wb") as out:
        out.write(b"PGFL" + struct.pack("<2I", len(ids), VOCAB))
        out.write(ids.astype("<u4").tobytes() + logits.astype("<f4").tobytes())


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for made in MODELS:
        if len(sys.argv) > 2 and made.name not in sys.argv[2:]:
            continue
        model, ids, fp4, logits = find_oracle(made)
        write_gguf(folder / "models" / f"arch_{made.name}.gguf", made, model, fp4)
        write_logits(folder / "logits" / f"arch_{made.name}.bin", ids, logits)
        if made.rope.get("rope_type") == "longrope":  # transformers chooses by the prompt's length
            ids = ids[:30]
            write_logits(folder / "logits" / f"arch_{made.name}_short.bin", ids, run(model, ids)[0])
        print(f"arch_{made.name}: logits have a standard deviation of {logits.std():.2f}")


if __name__ == "__main__":
    main()
