#!/usr/bin/env python3
"""Writes models/hf_*/ and logits/hf_*.bin: small random models in Hugging Face folders, and their logits.

The models are made, run (float64 weights and products, eager attention) and saved by `transformers`;
nothing of Pagoda is used. Prompts are longer than windows and than the context before rope scaling. Some
config.json are rewritten as older versions of transformers wrote them, some folders have shards, the
prefixes of models that see images, or matrices in blocks of fp8. Some are the models of make_architecture_models.py,
with the logits of their GGUF files. Formats: logits/README.md.

    python make_hf_folders.py [DIRECTORY [NAME…]]      (default: the folder of this script, all)

Needs torch, transformers, safetensors, numpy. Seconds.
"""

import copy
import dataclasses
import json
import math
import pathlib
import shutil
import struct
import sys

import numpy as np
import safetensors.torch
import torch
import transformers

import make_architecture_models as architectures

VOCAB = 64
EMBD, HEADS, KV_HEADS, HEAD_DIM, FFN = 32, 4, 2, 16, 48
WINDOW = 24
TOKENS = 80
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
        "original_max_position_embeddings": 32}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 32}


def kinds(layers, full_every):
    return ["full_attention" if (i + 1) % full_every == 0 else "sliding_attention"
            for i in range(layers)]


@dataclasses.dataclass
class Folder:
    name: str            # of the folder, after "hf_"
    family: str          # of the classes in transformers
    seed: int
    config: dict = dataclasses.field(default_factory=dict)  # beside what all have
    layers: int = 2
    rope: dict = dataclasses.field(default_factory=lambda: dict(ROPE))
    prefix: str = "Config"
    dtype: torch.dtype = torch.bfloat16
    norms_plus_one: bool = False  # transformers multiplies by 1 + weight
    shard_bytes: int = 0          # 0: one file
    rewrite: object = None        # changes config.json, then tensors
    vocabulary: int = VOCAB


def legacy_rope(config, tensors):
    """rope_parameters as rope_theta and rope_scaling, as transformers 4 wrote them."""
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    if "partial_rotary_factor" in rope:
        config["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    config["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    return config, tensors


def legacy_gemma3(config, tensors):
    """Gemma 3 of 2025: text_config, two bases, a pattern, and tensors below language_model."""
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope["full_attention"]["rope_theta"]
    config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
    config["rope_scaling"] = {"rope_type": "linear", "factor": rope["full_attention"]["factor"]}
    config["sliding_window_pattern"] = 6
    del config["layer_types"]
    root = {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
            "text_config": config, "vision_config": {"model_type": "siglip_vision_model"}}
    tensors = {"language_model." + name: tensor for name, tensor in tensors.items()}
    tensors["vision_tower.vision_model.post_layernorm.weight"] = torch.zeros(3, dtype=torch.bfloat16)
    tensors["multi_modal_projector.mm_soft_emb_norm.weight"] = torch.zeros(3, dtype=torch.bfloat16)
    return root, tensors


def without_layer_types(config, tensors):
    """max_window_layers alone, as transformers wrote it before 4.53."""
    del config["layer_types"]
    return config, tensors


def exaone_letters(config, tensors):
    del config["layer_types"]
    config["sliding_window_pattern"] = "LLLG"
    return config, tensors


def block_fp8(config, tensors):
    """Matrices of layers as F8_E4M3 with a scale for each block of 32 x 16."""
    config["quantization_config"] = {"quant_method": "fp8", "fmt": "e4m3",
                                     "activation_scheme": "dynamic", "weight_block_size": [32, 16]}
    made = {}
    for name, tensor in tensors.items():
        if "proj" in name:
            made[name], made[name + "_scale_inv"] = to_block_fp8(tensor)
        else:
            made[name] = tensor
    return config, made


def whole_fp8(config, tensors):
    """Matrices of layers as F8_E4M3 with one scale each, and one for their inputs, as Ministral 3 has them."""
    config["quantization_config"] = {"quant_method": "fp8", "activation_scheme": "static", "dequantize": False,
                                     "modules_to_not_convert": ["lm_head"], "weight_block_size": None}
    made = {}
    for name, tensor in tensors.items():
        if "proj" not in name:
            made[name] = tensor
            continue
        scale = whole_scale(tensor)
        made[name] = (tensor.float() / scale.float()).to(torch.float8_e4m3fn)
        made[name + "_scale_inv"] = scale
        made[name.replace(".weight", ".activation_scale")] = torch.tensor(0.05, dtype=torch.bfloat16)
    return config, made


def whole_scale(matrix):
    """A power of two, so that values that F8_E4M3 holds times it are bf16."""
    return torch.exp2(torch.floor(torch.log2(matrix.float().abs().max() / 240))).bfloat16()


def from_whole_fp8(matrix):
    scale = whole_scale(matrix).float()
    return ((matrix.float() / scale).to(torch.float8_e4m3fn).float() * scale).bfloat16()


def to_block_fp8(matrix):
    rows, columns = matrix.shape
    scales = torch.empty(math.ceil(rows / 32), math.ceil(columns / 16))
    values = torch.empty(rows, columns, dtype=torch.float8_e4m3fn)
    for i in range(scales.shape[0]):
        for j in range(scales.shape[1]):
            block = matrix[32 * i:32 * i + 32, 16 * j:16 * j + 16].float()
            scales[i, j] = block.abs().max() / 448
            values[32 * i:32 * i + 32, 16 * j:16 * j + 16] = (block / scales[i, j]).to(values.dtype)
    return values, scales


def from_block_fp8(values, scales):
    wide = scales.repeat_interleave(32, 0)[:values.shape[0]]
    wide = wide.repeat_interleave(16, 1)[:, :values.shape[1]]
    return (values.float() * wide).bfloat16()


FOLDERS = [
    Folder("llama", "Llama", 51, rope=LLAMA3, rewrite=legacy_rope),
    Folder("llama_bias", "Llama", 52, dtype=torch.float32,
           config={"attention_bias": True, "mlp_bias": True}),
    Folder("llama_fp8", "Llama", 53, rewrite=block_fp8),
    Folder("llama_fp8_whole", "Llama", 67, rewrite=whole_fp8),
    Folder("mistral", "Mistral", 54, config={"sliding_window": WINDOW}, shard_bytes=20000),
    Folder("qwen2", "Qwen2", 55, layers=3, dtype=torch.float16,
           config={"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 1},
           rewrite=without_layer_types),
    # As many tokens as hf_tokenizers/qwen2 has, which tests put beside it.
    Folder("qwen2_words", "Qwen2", 66, vocabulary=425, layers=1),
    Folder("qwen3", "Qwen3", 56, rope=YARN),
    Folder("gemma3", "Gemma3", 57, layers=7, norms_plus_one=True, prefix="TextConfig",
           config={"sliding_window": WINDOW, "layer_types": kinds(7, 6), "query_pre_attn_scalar": 20,
                   "hidden_activation": "gelu_pytorch_tanh"},
           rope={"full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
                 "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}),
    Folder("gemma3_images", "Gemma3", 58, layers=6, norms_plus_one=True, prefix="TextConfig",
           config={"sliding_window": WINDOW, "layer_types": kinds(6, 6), "query_pre_attn_scalar": 16,
                   "hidden_activation": "gelu_pytorch_tanh"},
           rope={"full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
                 "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}},
           rewrite=legacy_gemma3),
    Folder("phi3", "Phi3", 59, config={"sliding_window": WINDOW, "pad_token_id": 0},
           rope={**ROPE, "partial_rotary_factor": 0.75}),
    Folder("granite", "Granite", 60,
           config={"embedding_multiplier": 3.0, "attention_multiplier": 0.4,
                   "residual_multiplier": 0.5, "logits_scaling": 1.25}),
    # Granite 4.0 micro: a hybrid whose layers are all attention, without experts.
    Folder("granite4", "GraniteMoeHybrid", 68,
           config={"embedding_multiplier": 3.0, "attention_multiplier": 0.4, "residual_multiplier": 0.5,
                   "logits_scaling": 1.25, "num_local_experts": 0, "num_experts_per_tok": 0,
                   "shared_intermediate_size": FFN, "layer_types": ["attention"] * 2, "mamba_n_heads": 4,
                   "mamba_d_head": 16, "position_embedding_type": "rope"}),
    Folder("olmo2", "Olmo2", 61),
    Folder("olmo3", "Olmo3", 62, layers=4, rope={"full_attention": YARN, "sliding_attention": ROPE},
           config={"sliding_window": WINDOW, "layer_types": kinds(4, 4)}),
    Folder("smollm3", "SmolLM3", 63, layers=4,
           config={"no_rope_layers": [1, 1, 1, 0], "use_sliding_window": False, "pad_token_id": 0}),
    Folder("glm4", "Glm4", 64, config={"attention_bias": True, "pad_token_id": 0},
           rope={**ROPE, "partial_rotary_factor": 0.5}, rewrite=legacy_rope),
    Folder("exaone4", "Exaone4", 65, layers=4,
           config={"sliding_window": WINDOW, "sliding_window_pattern": 4,
                   "layer_types": kinds(4, 4)}, rewrite=exaone_letters),
]


# Models of make_architecture_models.py that are written as folders too: logits/arch_NAME.bin are theirs.
ALSO_GGUF = {"deepseek2", "deepseek2_groups", "deepseek3", "gemma2", "gemma4", "gemma4_moe", "gemma4_shared", "glm47_flash", "gpt_oss",
             "granitemoe", "mistral3", "mixtral", "phi3_longrope", "qwen2moe", "qwen3moe"}


def make_oracle(made):
    """A transformers model with seeded weights, already rounded to what the folder will hold."""
    config = getattr(transformers, made.family + made.prefix)(
        vocab_size=made.vocabulary, hidden_size=EMBD, intermediate_size=FFN, num_hidden_layers=made.layers,
        num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, head_dim=HEAD_DIM,
        max_position_embeddings=2048, rms_norm_eps=1e-5, tie_word_embeddings=made.seed % 2 == 0,
        rope_parameters=copy.deepcopy(made.rope), attn_implementation="eager", **made.config)
    model = getattr(transformers, made.family + "ForCausalLM")(config).double().eval()
    rng = np.random.default_rng(made.seed)
    gain = {"q_proj": 1.6, "k_proj": 1.3, "o_proj": 1.4, "gate_proj": 1.2, "down_proj": 1.2,
            "qkv_proj": 1.3, "gate_up_proj": 1.1, "embed_tokens": 2.0, "lm_head": 2.0}
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith(".bias"):
                values = rng.normal(0.0, 0.3, weight.shape)
            elif weight.ndim == 1:
                low = -0.4 if made.norms_plus_one else 0.6
                values = rng.uniform(low, low + 0.8, weight.shape)
            else:
                values = rng.normal(0.0, gain.get(name.split(".")[-2], 1.0) / math.sqrt(weight.shape[1]),
                                    weight.shape)
            values = torch.from_numpy(values).to(made.dtype)
            if made.rewrite is block_fp8 and "proj" in name:
                values = from_block_fp8(*to_block_fp8(values))
            if made.rewrite is whole_fp8 and "proj" in name:
                values = from_whole_fp8(values)
            weight.copy_(values.double())
    return model, rng.integers(3, made.vocabulary, TOKENS if made.vocabulary == VOCAB else 16)


def save(folder, made, model):
    shutil.rmtree(folder, ignore_errors=True)
    model.to(made.dtype).save_pretrained(folder, max_shard_size=made.shard_bytes or "1GB")
    (folder / "generation_config.json").unlink(missing_ok=True)
    if made.rewrite is None:
        return
    config = json.loads((folder / "config.json").read_text())
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    config, tensors = made.rewrite(config, tensors)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    safetensors.torch.save_file({name: tensor.contiguous() for name, tensor in tensors.items()},
                                folder / "model.safetensors", metadata={"format": "pt"})


def to_mxfp4(parts):
    """Blocks [expert, row, block, 16], byte i of codes 2 i and 2 i + 1, and exponents + 127. Parts are as GGUF
    has them: byte i of codes i and i + 16; rows of gates and ups take turns."""
    rows = parts["down"] if "down" in parts else np.stack([parts["gate"], parts["up"]], 2)
    rows = rows.reshape(rows.shape[0], -1, rows.shape[-1] // 17, 17)
    packed = rows[..., 1:]
    codes = np.concatenate([packed & 15, packed >> 4], -1)
    return torch.from_numpy(codes[..., ::2] | codes[..., 1::2] << 4), torch.from_numpy(rows[..., 0].copy())


def save_also_gguf(folder, made, model, fp4):
    """Matrices are float16, all else float32; MXFP4 where the GGUF file has it."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        tensor.data = tensor.data.to(torch.float16 if tensor.ndim > 1 and "bias" not in name else torch.float32)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if not fp4:
        return
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4"}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    for name, parts in fp4.items():
        del tensors[name]
        tensors[name + "_blocks"], tensors[name + "_scales"] = to_mxfp4(parts)
    safetensors.torch.save_file({name: tensor.contiguous() for name, tensor in tensors.items()},
                                folder / "model.safetensors", metadata={"format": "pt"})


def save_gemma4_images(folder, plain):
    """The text model in `plain` as Gemma 4 was published: text_config, one size of heads for all layers that see
    all keys, tensors below model.language_model., and those of images and sound."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    text = json.loads((plain / "config.json").read_text())
    heads = list(text.pop("per_layer_config").values())[0]
    text["global_head_dim"] = heads["head_dim"]
    text["num_global_key_value_heads"] = heads["num_key_value_heads"]
    text["use_bidirectional_attention"] = "vision"
    config = {"architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", "text_config": text,
              "vision_config": {"model_type": "gemma4_vision"}, "audio_config": None, "tie_word_embeddings": True}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    tensors = {name.replace("model.", "model.language_model.", 1): tensor for name, tensor in
               safetensors.torch.load_file(plain / "model.safetensors").items()}
    for name in ("model.embed_vision.embedding_projection.weight", "model.vision_tower.std_bias",
                 "model.audio_tower.output_proj.weight"):
        tensors[name] = torch.zeros(3, dtype=torch.float16)
    safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    wanted = sys.argv[2:] or [made.name for made in FOLDERS] + sorted(ALSO_GGUF)
    for made in FOLDERS:
        if made.name not in wanted:
            continue
        model, ids = make_oracle(made)
        with torch.no_grad():
            logits = model(torch.from_numpy(ids)[None]).logits[0].numpy()
        save(root / "models" / f"hf_{made.name}", made, model)
        with open(root / "logits" / f"hf_{made.name}.bin", "wb") as out:
            out.write(b"PGFL" + struct.pack("<2I", len(ids), made.vocabulary))
            out.write(ids.astype("<u4").tobytes() + logits.astype("<f4").tobytes())
        print(f"hf_{made.name}: logits have a standard deviation of {logits.std():.2f}")
    for made in architectures.MODELS:
        if made.name in wanted and made.name in ALSO_GGUF:
            model, _, fp4, _ = architectures.find_oracle(made)
            save_also_gguf(root / "models" / f"hf_{made.name}", made, model, fp4)
            print(f"hf_{made.name}: the model of arch_{made.name}.gguf")
        if made.name == "gemma4" and made.name in wanted:
            save_gemma4_images(root / "models" / "hf_gemma4_images", root / "models" / "hf_gemma4")


if __name__ == "__main__":
    main()
