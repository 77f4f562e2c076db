"""Requests on their way into the engine, and its news on their way out."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

from . import _arguments, _pagoda
from .inputs import PromptType
from .outputs import (
    CompletionOutput,
    EmbeddingOutput,
    EmbeddingRequestOutput,
    Logprob,
    PoolingOutput,
    PoolingRequestOutput,
    RequestOutput,
)
from .sampling_params import SamplingParams


def default_params(model: "_pagoda.Model") -> SamplingParams:
    """Returns vLLM's defaults, max_tokens=16 among them, under the values that the model recommends."""
    return SamplingParams(**{name: _short(value) for name, value in model.sampling_defaults.items()})


def _short(value: float) -> float:
    """A float of 32 bits by its shortest decimals: 0.8, not 0.800000011920929."""
    return value if isinstance(value, int) else float(f"{value:.7g}")


def check_params(params: Any) -> SamplingParams:
    """Returns the parameters, or raises TypeError for what are none."""
    if not isinstance(params, SamplingParams):
        raise _arguments.wrong_type("sampling_params", params, "SamplingParams")
    return params


def text_request(prompt: PromptType, params: Optional[SamplingParams], name: str = "prompt") -> dict[str, Any]:
    """Returns the body of a completion, or of an embedding where its text is called "input"."""
    body = params.fields(is_chat=False) if params is not None else {}
    if isinstance(prompt, Mapping):
        off = ("multi_modal_data", "mm_processor_kwargs", "multi_modal_uuids")
        empty = {key for key in off if key in prompt and not prompt[key]}
        unknown = set(prompt) - {"prompt", "prompt_token_ids", "cache_salt"} - empty
        if unknown:
            raise ValueError(f"prompt: has {', '.join(sorted(map(str, unknown)))}, which models of text do not take")
        if prompt.get("cache_salt"):
            body["cache_salt"] = prompt["cache_salt"]
        ids = prompt.get("prompt_token_ids")
        prompt = prompt.get("prompt") if ids is None else ids
        if prompt is None:
            raise ValueError('prompt: has neither "prompt" nor "prompt_token_ids"')
    if not isinstance(prompt, (str, Sequence)) and not hasattr(prompt, "__array__"):
        raise _arguments.wrong_type("prompt", prompt, "a text, token ids or a dict of them")
    body[name] = prompt if isinstance(prompt, str) else _arguments.token_ids("prompt", prompt)
    return body


def chat_request(messages: Any, params: SamplingParams, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the body of a chat."""
    return {**params.fields(is_chat=True), **options, "messages": _arguments.messages("messages", messages)}


def prompt_text(prompt: Any) -> Optional[str]:
    """Returns the prompt's text where it was given as one."""
    if isinstance(prompt, Mapping):
        prompt = prompt.get("prompt")
    return prompt if isinstance(prompt, str) else None


def _logprobs(scores: list[list[Any]]) -> dict[int, Logprob]:
    return {token: Logprob(logprob, rank, text) for token, logprob, rank, text in scores}


class RequestState:
    """The outputs of one request, so far. `decode` gives a prompt without a text, that of a chat, its text."""

    def __init__(self, request_id: str, prompt: Optional[str], params: Optional[SamplingParams]) -> None:
        self.request_id = request_id
        self.prompt = prompt
        self.prompt_token_ids: list[int] = []
        self.prompt_scores: Optional[list[Any]] = None
        self.embedding: Optional[list[float]] = None
        self.cached = 0
        self.finished = False
        self.decode: Optional[Callable[[list[int]], str]] = None
        scored = params is not None and params.logprobs is not None
        self.outputs = [
            CompletionOutput(
                index, logprobs=[] if scored else None, cumulative_logprob=0.0 if scored else None
            )
            for index in range(params.n if params is not None else 1)
        ]

    def take(self, news: dict[str, Any]) -> None:
        """Adds what came. Raises RuntimeError where the request failed."""
        if "error" in news:
            self.finished = True
            raise RuntimeError(f"request {self.request_id}: {news['error']}")
        self.cached = news["cached"]
        self.prompt_token_ids = news.get("prompt_token_ids", self.prompt_token_ids)
        if self.prompt is None and self.decode is not None:
            self.prompt = self.decode(self.prompt_token_ids)
        self.prompt_scores = news.get("prompt_scores", self.prompt_scores)
        self.embedding = news.get("embedding", self.embedding)
        self.finished = news.get("finished", False)
        output = self.outputs[news["index"]]
        output.text += news["text"]
        output.token_ids += news["token_ids"]
        if output.logprobs is not None:
            for scores in news.get("scores", []):
                output.logprobs.append(_logprobs(scores))
                output.cumulative_logprob = (output.cumulative_logprob or 0.0) + scores[0][1]
        if "finish_reason" in news:
            output.finish_reason = news["finish_reason"]
            output.stop_reason = news["stop_reason"]

    def abort(self) -> None:
        """Ends what has not ended, as somebody asked for."""
        self.finished = True
        for output in self.outputs:
            output.finish_reason = output.finish_reason or "abort"

    def output(self) -> RequestOutput:
        """Returns the outputs so far; later news do not change them."""
        scores = self.prompt_scores
        return RequestOutput(
            request_id=self.request_id,
            prompt=self.prompt,
            prompt_token_ids=self.prompt_token_ids,
            prompt_logprobs=None if scores is None else [s and _logprobs(s) for s in scores],
            outputs=[
                CompletionOutput(
                    each.index,
                    each.text,
                    list(each.token_ids),
                    each.cumulative_logprob,
                    None if each.logprobs is None else list(each.logprobs),
                    each.finish_reason,
                    each.stop_reason,
                )
                for each in self.outputs
            ],
            finished=self.finished,
            num_cached_tokens=self.cached,
        )

    def embedding_output(self) -> EmbeddingRequestOutput:
        """Returns the embedding."""
        vector = EmbeddingOutput(self.embedding or [])
        return EmbeddingRequestOutput(self.request_id, vector, self.prompt_token_ids, num_cached_tokens=self.cached)

    def pooling_output(self) -> PoolingRequestOutput:
        """Returns the same vector under vLLM's other name."""
        vector = PoolingOutput(self.embedding or [])
        return PoolingRequestOutput(self.request_id, vector, self.prompt_token_ids, num_cached_tokens=self.cached)


def submit(batch: "_pagoda.Batch", kind: str, body: Mapping[str, Any], params: Optional[SamplingParams]) -> None:
    """Submits a request. Without `max_tokens` in `params` it ends with its context."""
    fills_context = params is not None and params.max_tokens is None
    batch.add(kind, json.dumps(body, default=_plain), fills_context)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    if hasattr(value, "item"):  # a number of NumPy
        return value.item()
    raise TypeError(f"{type(value).__name__} is no value of JSON")


def read_news(batch: "_pagoda.Batch", milliseconds: int) -> list[dict[str, Any]]:
    """Returns what came, waiting at most so long."""
    return json.loads(batch.wait(milliseconds))
