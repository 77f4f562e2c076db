"""Pagoda in Python: an LLM inference engine built around its KV cache, in this process.

    from pagoda import LLM, SamplingParams

    llm = LLM(model="Qwen/Qwen2.5-0.5B-Instruct")
    for output in llm.generate(["The tallest pagoda in Japan"], SamplingParams(temperature=0.0)):
        print(output.outputs[0].text)

Names are those of vLLM's offline API. `pagoda.kv` is the cache alone; `python -m pagoda.serve`
starts the server.
"""

from ._pagoda import __version__
from ._models import bundled_model, default_model
from .async_llm import AsyncEngineArgs, AsyncLLM, AsyncLLMEngine
from .inputs import PromptType, TextPrompt, TokensPrompt
from .llm import LLM
from .outputs import (
    CompletionOutput,
    EmbeddingOutput,
    EmbeddingRequestOutput,
    Logprob,
    PoolingOutput,
    PoolingRequestOutput,
    RequestOutput,
)
from .pooling_params import PoolingParams
from .sampling_params import GuidedDecodingParams, SamplingParams, StructuredOutputsParams
from .tokenizer import Tokenizer

__all__ = [
    "LLM",
    "AsyncEngineArgs",
    "AsyncLLM",
    "AsyncLLMEngine",
    "CompletionOutput",
    "EmbeddingOutput",
    "EmbeddingRequestOutput",
    "GuidedDecodingParams",
    "Logprob",
    "PoolingOutput",
    "PoolingParams",
    "PoolingRequestOutput",
    "PromptType",
    "RequestOutput",
    "SamplingParams",
    "StructuredOutputsParams",
    "TextPrompt",
    "TokensPrompt",
    "Tokenizer",
    "__version__",
    "bundled_model",
    "default_model",
]
