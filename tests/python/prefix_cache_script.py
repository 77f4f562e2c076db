"""20 questions behind one system prompt, asked twice: as scripts for vLLM are written."""

import time

from vllm import LLM, SamplingParams

llm = LLM(model="mistralai/Mistral-7B-Instruct-v0.2", enable_prefix_caching=True, max_model_len=4096)
params = SamplingParams(temperature=0.0, max_tokens=64)

system_prompt = "You are a helpful assistant. " * 50
queries = [f"{system_prompt}Question {i}: What is {i} + {i}?" for i in range(20)]


def timed():
    begin = time.perf_counter()
    outputs = llm.generate(queries, params)
    return time.perf_counter() - begin, outputs


cold, first = timed()
warm, second = timed()
assert [o.outputs[0].text for o in first] == [o.outputs[0].text for o in second]
print(f"cold {cold:.2f} s, warm {warm:.2f} s, speed-up {cold / warm:.2f}x")
print("cached tokens of the last prompt:", second[-1].num_cached_tokens, "of", len(second[-1].prompt_token_ids))
