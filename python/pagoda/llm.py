"""LLM: a model in this process, by vLLM's offline names."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

from . import _arguments, _pagoda
from ._models import model_to_use
from ._progress import Progress
from ._requests import Prompt, RequestState, prompt_text, read_news, submit, text_request
from .outputs import (
    EmbeddingOutput,
    EmbeddingRequestOutput,
    PoolingOutput,
    PoolingRequestOutput,
    RequestOutput,
)
from .sampling import SamplingParams

_WAIT_MS = 100  # between two looks at Ctrl-C

# vLLM's arguments that change nothing here, and why.
_IGNORED = {
    "dtype": "weights are computed as their file has them",
    "trust_remote_code": "no code of a model is ever run",
    "enforce_eager": "there are no graphs to leave out on a CPU",
    "swap_space": "sequences that make room are computed again from the cache",
    "cpu_offload_gb": "weights stay where they are computed",
    "disable_log_stats": "nothing is logged",
    "disable_custom_all_reduce": "one process computes",
    "distributed_executor_backend": "one process computes",
    "download_dir": "nothing is downloaded",
    "load_format": "the model's file says what it is",
    "tokenizer_mode": "the model's file says how text is cut",
    "skip_tokenizer_init": "prompts may be token ids with a tokenizer there",
    "enable_chunked_prefill": "prompts are computed in chunks always",
    "max_seq_len_to_capture": "there are no graphs on a CPU",
    "max_logprobs": "up to 128 are given",
    "async_scheduling": "steps are planned while the last one is computed",
    "compilation_config": "nothing is compiled",
    "runner": "a model generates and embeds",
    "task": "a model generates and embeds",
    "seed": "requests have seeds of their own",
    "use_tqdm_on_load": "loading shows itself on a terminal",
    "generation_config": "parameters of a request stand above the model's",
    "attention_backend": "the kernels of this CPU are chosen once",
    "disable_hybrid_kv_cache_manager": "window layers keep their window alone",
    "num_gpu_blocks_override": "it bounds a cache in a GPU; kv_cache_memory_bytes bounds this one",
}
_SIZES_OF_ONE = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


def open_model(owner: str, model: Optional[str], options: Mapping[str, Any]) -> "_pagoda.Model":
    """Loads a model. `options` are arguments of LLM; None stands for a default."""
    asked = _pagoda.Options()
    asked.model = model if model is not None else model_to_use()
    known = [name for name in dir(asked) if not name.startswith("_")]
    others = {}
    for name, value in options.items():
        if name in _SIZES_OF_ONE:
            if value not in (None, 1):
                raise ValueError(f"{owner}: {name} is {value}, but one process computes; `pagoda serve` has -tp")
        elif name not in known:
            others[name] = value
        elif value is not None:
            setattr(asked, name, str(value) if name == "kv_cache_memory_bytes" else value)
    _arguments.check(owner, others, [*known, *_SIZES_OF_ONE], _IGNORED)
    opened = _pagoda.Model.open(asked)
    if options.get("gpu_memory_utilization") is not None and not opened.is_on_gpu:
        _arguments.warn_once(owner, "gpu_memory_utilization", "the model is on a CPU; kv_cache_memory_bytes bounds it")
    return opened


class LLM:
    """A model that generates, chats and embeds in this process.

    `model` is a GGUF file, a folder with safetensors or a name of Hugging Face that was downloaded
    (`pagoda pull`); without one PAGODA_MODEL, the default model, or the bundled story model. Arguments
    are vLLM's: `tokenizer`, `max_model_len`, `enable_prefix_caching`, `gpu_memory_utilization`,
    `kv_cache_dtype`, `block_size`, `max_num_seqs`, `max_num_batched_tokens`, `revision`; and `device`,
    `threads`, `kv_cache_memory_bytes` ("4GiB"), `kv_eviction`, `chat_template` (a file) as flags of
    `pagoda serve` have them. An unknown one is a TypeError.

    Several live side by side. Any thread may call any method.
    """

    def __init__(self, model: Optional[str] = None, **options: Any) -> None:
        self._model: Optional[_pagoda.Model] = open_model(type(self).__name__, model, options)
        self._numbers = itertools.count()

    def generate(
        self,
        prompts: Union[Prompt, Sequence[Prompt]],
        sampling_params: Union[SamplingParams, Sequence[SamplingParams], None] = None,
        use_tqdm: Any = True,
        lora_request: None = None,
        **others: Any,
    ) -> list[RequestOutput]:
        """Completes the prompts, all together, and returns their outputs in the same order.

        Without parameters those that the model recommends are taken. Ctrl-C ends it. `use_tqdm`: False
        for no progress bar, or tqdm itself.
        """
        _check_rest("generate", lora_request, others)
        asked = _listed(prompts)
        params = _for_each(sampling_params, len(asked))
        bodies = [text_request(prompt, one) for prompt, one in zip(asked, params)]
        states = self._run("text", bodies, [prompt_text(prompt) for prompt in asked], params, use_tqdm)
        return [state.output() for state in states]

    def chat(
        self,
        messages: Union[Sequence[Mapping[str, Any]], Sequence[Sequence[Mapping[str, Any]]]],
        sampling_params: Union[SamplingParams, Sequence[SamplingParams], None] = None,
        use_tqdm: Any = True,
        lora_request: None = None,
        *,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        chat_template_kwargs: Optional[Mapping[str, Any]] = None,
        **others: Any,
    ) -> list[RequestOutput]:
        """Answers one conversation, or a list of them. The text is as the model wrote it."""
        _check_rest("chat", lora_request, others)
        several = [messages] if messages and isinstance(messages[0], Mapping) else list(messages)
        params = _for_each(sampling_params, len(several))
        bodies = []
        for conversation, one in zip(several, params):
            body = one.fields(is_chat=True) if one is not None else {}
            body["messages"] = list(conversation)
            body["add_generation_prompt"] = add_generation_prompt
            body["continue_final_message"] = continue_final_message
            if tools:
                body["tools"] = list(tools)
            if chat_template_kwargs:
                body["chat_template_kwargs"] = dict(chat_template_kwargs)
            bodies.append(body)
        states = self._run("chat", bodies, [None] * len(bodies), params, use_tqdm)
        return [state.output() for state in states]

    def embed(self, prompts: Union[Prompt, Sequence[Prompt]], **others: Any) -> list[EmbeddingRequestOutput]:
        """Returns an embedding of length 1 for each prompt: that of its last token."""
        return [
            EmbeddingRequestOutput(
                state.request_id,
                EmbeddingOutput(state.embedding or []),
                state.prompt_token_ids,
                num_cached_tokens=state.cached,
            )
            for state in self._embedded("embed", prompts, others)
        ]

    def encode(self, prompts: Union[Prompt, Sequence[Prompt]], **others: Any) -> list[PoolingRequestOutput]:
        """Returns the same vectors as `embed`, as vLLM's pooling outputs."""
        return [
            PoolingRequestOutput(
                state.request_id,
                PoolingOutput(state.embedding or []),
                state.prompt_token_ids,
                num_cached_tokens=state.cached,
            )
            for state in self._embedded("encode", prompts, others)
        ]

    def get_tokenizer(self) -> "Tokenizer":
        """Returns the model's tokenizer."""
        return Tokenizer(self._open())

    def reset_prefix_cache(self) -> bool:
        """Empties the cache: the next prompts are computed from their first token."""
        self._open().reset_prefix_cache()
        return True

    @property
    def max_model_len(self) -> int:
        """How many tokens prompt and output may have together."""
        return self._open().max_model_len

    def close(self) -> None:
        """Gives the model's memory back once nothing runs."""
        self._model = None

    def __enter__(self) -> "LLM":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _open(self) -> "_pagoda.Model":
        if self._model is None:
            raise RuntimeError("the LLM is closed")
        return self._model

    def _embedded(self, method: str, prompts: Any, others: dict[str, Any]) -> list[RequestState]:
        use_tqdm = others.pop("use_tqdm", True)
        others.pop("pooling_task", None)
        _check_rest(method, None, others)
        asked = _listed(prompts)
        bodies = [text_request(prompt, None, "input") for prompt in asked]
        texts = [prompt_text(prompt) for prompt in asked]
        return self._run("embedding", bodies, texts, [None] * len(asked), use_tqdm)

    def _run(
        self, kind: str, bodies: Sequence[dict], texts: Sequence, params: Sequence, use_tqdm: Any
    ) -> list[RequestState]:
        batch = _pagoda.Batch(self._open())
        states = []
        try:
            for body, text, one in zip(bodies, texts, params):
                submit(batch, kind, body, one)
                states.append(RequestState(str(next(self._numbers)), text, one))
            with Progress(use_tqdm, len(states)) as progress:
                while batch.unfinished:
                    for news in read_news(batch, _WAIT_MS):
                        state = states[news["request"]]
                        state.take(news)
                        progress.add(state.finished, len(news["token_ids"]))
        finally:
            batch.cancel()
        return states


class Tokenizer:
    """Text to tokens and back, as the model's file defines it."""

    def __init__(self, model: "_pagoda.Model") -> None:
        self._model = model

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Returns the text's tokens."""
        return self._model.encode(text, add_special_tokens)

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        """Returns the tokens' text. Bytes that are no UTF-8 become U+FFFD."""
        return self._model.decode(list(token_ids), skip_special_tokens).decode("utf-8", "replace")


def _listed(prompts: Any) -> list[Any]:
    """A prompt alone is a list of one; so is a list of token ids."""
    if isinstance(prompts, (str, Mapping)) or (prompts and isinstance(prompts[0], int)):
        return [prompts]
    return list(prompts)


def _for_each(params: Any, count: int) -> list[Optional[SamplingParams]]:
    if params is None or isinstance(params, SamplingParams):
        return [params] * count
    if len(params) != count:
        raise ValueError(f"sampling_params: has {len(params)} entries for {count} prompts")
    return list(params)


def _check_rest(method: str, lora_request: Any, others: Mapping[str, Any]) -> None:
    if lora_request is not None:
        raise ValueError(f"{method}: lora_request is not supported: adapters are merged into a model's file first")
    ignored = {
        "priority": "SamplingParams has it",
        "tokenization_kwargs": "prompts may be token ids",
        "chat_template_content_format": "content is read in either form",
        "mm_processor_kwargs": "models of text alone are computed",
    }
    known = ["sampling_params", "use_tqdm", "lora_request", "tools", "chat_template_kwargs"]
    _arguments.check(f"LLM.{method}", others, known, ignored)
