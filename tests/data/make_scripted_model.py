#!/usr/bin/env python3
"""Writes models/scripted_calls.gguf and models/scripted_edit.gguf: llama models whose next token depends
on the last one alone, so that their answers are known. The chat template writes ':' behind a user's
message and ';' behind a tool's. Behind ':' scripted_calls thinks, speaks and calls a tool, behind ';'
it gives an answer. scripted_edit writes a block of aider's format "diff" that changes greeting.txt.

Embeddings are random signs, layers add nothing, and the output's row of a token is the embedding
of the one before it. The markers of calls are control tokens, those of reasoning are user-defined.

    pip install gguf numpy; python tests/data/make_scripted_model.py
"""

import pathlib

import gguf
import numpy as np

EMBEDDING = 64
HEADS = 2
UNKNOWN, CONTROL, USER_DEFINED, NORMAL, BYTE = 2, 3, 4, 1, 6

CALL = ["<think>\n", "I look it up.", "\n</think>\n\n", "Let me ask.", "\n", "<tool_call>",
        '\n{"name": "get_weather", ', '"arguments": {"city": ', '"Rome"}}\n', "</tool_call>"]
ANSWER = ["It is ", "21 degrees."]
EDIT = ["greeting.txt\n", "```\n", "<<<<<<< SEARCH\n", "Hello!\n", "=======\n", "Good morning!\n",
        ">>>>>>> REPLACE\n", "```"]

TEMPLATE = """\
{%- if tools %}{{ '[tools]' + tools | tojson }}{% endif %}
{%- for m in messages %}{{ '[' + m.role + ']' }}
{%- if m.role == 'assistant' %}{{ ';' if messages[loop.index0 - 1].role == 'tool' else ':' }}{% endif %}
{%- if m.reasoning_content %}{{ '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}
{{- m.content or '' }}
{%- for c in m.tool_calls or [] %}
{{- '\\n' if m.content or not loop.first else '' }}
{{- '<tool_call>\\n{"name": "' + c.function.name + '", "arguments": ' }}
{{- c.function.arguments | tojson + '}\\n</tool_call>' }}
{%- endfor %}
{{- '</s>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '[assistant]' + (';' if messages[-1].role == 'tool' else ':') }}
{%- endif %}"""


def write_model(name, context_tokens, scripts):
    """`scripts`: by the character behind which each begins."""
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)] + ["▁"]
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL]
    for text in sum(scripts.values(), []):
        tokens.append(text)
        types.append(CONTROL if "tool_call>" in text else USER_DEFINED)
    ids = {token: i for i, token in enumerate(tokens)}
    signs = np.random.default_rng(22).choice([-1.0, 1.0], (len(tokens), EMBEDDING))
    output = np.zeros((len(tokens), EMBEDDING))
    for start, script in scripts.items():
        last = ids[f"<0x{ord(start):02X}>"]
        for text in script + ["</s>"]:
            output[ids[text]] += signs[last]
            last = ids[text]
    for start, script in scripts.items():
        last = ids[f"<0x{ord(start):02X}>"]
        for text in script + ["</s>"]:
            scores = output @ signs[last]
            assert scores.argmax() == ids[text] and np.sort(scores)[-2] < 40, (text, np.sort(scores)[-3:])
            last = ids[text]

    path = pathlib.Path(__file__).parent / "models" / f"{name}.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(name)
    writer.add_context_length(context_tokens)
    writer.add_embedding_length(EMBEDDING)
    writer.add_block_count(1)
    writer.add_feed_forward_length(EMBEDDING)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(EMBEDDING // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)
    half = lambda array: np.ascontiguousarray(array, dtype=np.float16)
    square = half(np.zeros((EMBEDDING, EMBEDDING)))
    writer.add_tensor("token_embd.weight", half(signs))
    writer.add_tensor("output.weight", half(output))
    writer.add_tensor("output_norm.weight", np.ones(EMBEDDING, dtype=np.float32))
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{name}.weight", np.ones(EMBEDDING, dtype=np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        writer.add_tensor(f"blk.0.{name}.weight", square)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    write_model("scripted_calls", 4096, {":": CALL, ";": ANSWER})
    # Prompts of aider are 10 KB of text, and a token is a byte here.
    write_model("scripted_edit", 32768, {":": EDIT})


if __name__ == "__main__":
    main()
