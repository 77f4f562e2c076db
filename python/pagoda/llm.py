"""LLM: a model in this process, by vLLM's offline names."""

import itertools
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

from . import _arguments, _foreign, _pagoda
from ._options import open_model
from ._progress import Progress
from ._requests import (
    RequestState,
    chat_request,
    check_params,
    default_params,
    prompt_text,
    read_news,
    submit,
    text_request,
)
from .inputs import PromptType
from .outputs import EmbeddingRequestOutput, PoolingRequestOutput, RequestOutput
from .pooling_params import PoolingParams
from .sampling_params import SamplingParams
from .tokenizer import Tokenizer

_WAIT_MS = 100  # between two looks at Ctrl-C

class LLM:
    """A model that generates, chats and embeds in this process.

    `model` is a GGUF file, a folder with safetensors or a name of Hugging Face that was downloaded
    (`pagoda pull`); without one PAGODA_MODEL, the default model, or the bundled story model. Arguments
    are vLLM's: `tokenizer`, `max_model_len`, `enable_prefix_caching`, `gpu_memory_utilization`,
    `kv_cache_dtype`, `block_size`, `max_num_seqs`, `max_num_batched_tokens`, `revision`, `dtype`, `quantization`,
    `num_gpu_blocks_override`, `speculative_config`; and `device`, `threads`, `kv_cache_memory_bytes` ("4GiB"), `kv_eviction`,
    `chat_template` (a file) as flags of `pagoda serve` have them. An unknown one is a TypeError.

    Several live side by side. Any thread may call any method.
    """

    def __init__(self, model: Optional[str] = None, **options: Any) -> None:
        self._model: Optional[_pagoda.Model] = open_model(type(self).__name__, model, options)
        self._numbers = itertools.count()

    def generate(
        self,
        prompts: Union[PromptType, Sequence[PromptType]],
        sampling_params: Union[SamplingParams, Sequence[SamplingParams], None] = None,
        use_tqdm: Any = True,
        lora_request: None = None,
        **others: Any,
    ) -> list[RequestOutput]:
        """Completes the prompts, all together, and returns their outputs in the same order.

        Without parameters they are those of get_default_sampling_params(). Ctrl-C ends it. `use_tqdm`:
        False for no progress bar, or tqdm itself.
        """
        _check_rest("generate", {"lora_request": lora_request, **others})
        asked = _listed(prompts)
        params = self._for_each(sampling_params, len(asked))
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
        _check_rest("chat", {"lora_request": lora_request, **others})
        several = _conversations(messages)
        params = self._for_each(sampling_params, len(several))
        options: dict[str, Any] = {
            "add_generation_prompt": add_generation_prompt,
            "continue_final_message": continue_final_message,
        }
        if tools:
            options["tools"] = list(tools)
        if chat_template_kwargs:
            options["chat_template_kwargs"] = dict(chat_template_kwargs)
        bodies = [chat_request(conversation, one, options) for conversation, one in zip(several, params)]
        states = self._run("chat", bodies, [None] * len(bodies), params, use_tqdm)
        return [state.output() for state in states]

    def embed(self, prompts: Union[PromptType, Sequence[PromptType]], **others: Any) -> list[EmbeddingRequestOutput]:
        """Returns an embedding of length 1 for each prompt: that of its last token."""
        return [state.embedding_output() for state in self._embedded("embed", prompts, others)]

    def encode(self, prompts: Union[PromptType, Sequence[PromptType]], **others: Any) -> list[PoolingRequestOutput]:
        """Returns the same vectors as `embed`, as vLLM's pooling outputs."""
        return [state.pooling_output() for state in self._embedded("encode", prompts, others)]

    def get_tokenizer(self) -> Tokenizer:
        """Returns the model's tokenizer."""
        return Tokenizer(self._open())

    def get_default_sampling_params(self) -> SamplingParams:
        """Returns the parameters of requests without any: vLLM's, and of those what the model recommends."""
        return default_params(self._open())

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

    def __getattr__(self, name: str) -> Any:
        raise _foreign.missing(type(self).__name__, name, _foreign.MISSING_METHODS)

    def _for_each(self, params: Any, count: int) -> list[SamplingParams]:
        """Returns parameters for each of so many prompts."""
        if params is None:
            params = self.get_default_sampling_params()
        if isinstance(params, Mapping) or not isinstance(params, Sequence):
            return [check_params(params)] * count
        if len(params) != count:
            raise ValueError(f"sampling_params: has {len(params)} entries for {count} prompts")
        return [check_params(one) for one in params]

    def _embedded(self, method: str, prompts: Any, others: dict[str, Any]) -> list[RequestState]:
        use_tqdm = others.pop("use_tqdm", True)
        task = others.pop("pooling_task", None)
        if task not in (None, "embed", "encode"):
            raise ValueError(f"pooling_task: is {_arguments.shown(task)}, expected embed")
        pooling = others.pop("pooling_params", None)
        if pooling is not None and not isinstance(pooling, PoolingParams):
            raise _arguments.wrong_type("pooling_params", pooling, "PoolingParams")
        _check_rest(method, others)
        asked = _listed(prompts)
        fields = pooling.fields() if pooling is not None else {}
        bodies = [{**text_request(prompt, None, "input"), **fields} for prompt in asked]
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
                state = RequestState(str(next(self._numbers)), text, one)
                state.decode = self.get_tokenizer().decode if kind == "chat" else None
                states.append(state)
            with Progress(use_tqdm, len(states)) as progress:
                while batch.unfinished:
                    for news in read_news(batch, _WAIT_MS):
                        state = states[news["request"]]
                        state.take(news)
                        progress.add(state.finished, len(news["token_ids"]))
        finally:
            batch.cancel()
        return states


def _listed(prompts: Any) -> list[Any]:
    """A prompt alone is a list of one; so is a list of token ids."""
    if isinstance(prompts, (str, Mapping)):
        return [prompts]
    if not hasattr(prompts, "__iter__"):
        raise _arguments.wrong_type("prompts", prompts, "a text, token ids, a dict or a list of them")
    several = list(prompts)
    return [several] if several and isinstance(several[0], numbers.Integral) else several


def _conversations(messages: Any) -> list[Any]:
    if isinstance(messages, (str, Mapping)) or not isinstance(messages, Sequence):
        raise _arguments.wrong_type("messages", messages, "a list of messages, or a list of such lists")
    return [messages] if messages and isinstance(messages[0], Mapping) else list(messages)


def _check_rest(method: str, others: Mapping[str, Any]) -> None:
    known = ("sampling_params", "use_tqdm", "tools", "chat_template_kwargs", "pooling_params")
    _arguments.check(f"LLM.{method}", others, known, _foreign.METHOD_IGNORED, _foreign.METHOD_REFUSED)
