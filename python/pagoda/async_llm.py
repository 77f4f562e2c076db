"""AsyncLLM: outputs as they come, for programs with an event loop."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Optional

from . import _arguments, _foreign, _pagoda
from ._options import open_model
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


class AsyncEngineArgs:
    """Arguments of AsyncLLM, for AsyncLLM.from_engine_args()."""

    def __init__(self, model: Optional[str] = None, **options: Any) -> None:
        self.model = model
        self.options = options


class AsyncLLM:
    """A model whose outputs are streamed. Arguments are those of LLM.

        async for output in llm.generate("Once upon a time", SamplingParams(max_tokens=64)):
            print(output.outputs[0].text)
    """

    def __init__(self, model: Optional[str] = None, **options: Any) -> None:
        self._model: Optional[_pagoda.Model] = open_model(type(self).__name__, model, options)
        self._numbers = itertools.count()
        self._running: dict[str, _pagoda.Batch] = {}

    @classmethod
    def from_engine_args(cls, engine_args: AsyncEngineArgs) -> "AsyncLLM":
        """Opens a model as vLLM's scripts do."""
        return cls(engine_args.model, **engine_args.options)

    async def generate(
        self,
        prompt: PromptType,
        sampling_params: Optional[SamplingParams] = None,
        request_id: Optional[str] = None,
        **others: Any,
    ) -> AsyncIterator[RequestOutput]:
        """Yields all outputs of the prompt so far, each time that there is more of them.

        A generator that is closed, or whose task is cancelled, ends its request.
        """
        _check_rest("generate", others)
        params = self._params(sampling_params)
        body = text_request(prompt, params)
        async for state in self._stream("text", body, prompt_text(prompt), params, request_id):
            yield state.output()

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        sampling_params: Optional[SamplingParams] = None,
        request_id: Optional[str] = None,
        **others: Any,
    ) -> AsyncIterator[RequestOutput]:
        """The same for a conversation. `tools` and `chat_template_kwargs` are those of LLM.chat()."""
        names = ("tools", "chat_template_kwargs", "add_generation_prompt", "continue_final_message")
        options = {name: others.pop(name) for name in names if others.get(name) is not None}
        _check_rest("chat", others)
        params = self._params(sampling_params)
        body = chat_request(messages, params, options)
        async for state in self._stream("chat", body, None, params, request_id):
            yield state.output()

    async def encode(
        self,
        prompt: PromptType,
        pooling_params: Optional[PoolingParams] = None,
        request_id: Optional[str] = None,
        **others: Any,
    ) -> AsyncIterator[PoolingRequestOutput]:
        """Yields the vector of embed(), once."""
        if pooling_params is not None and not isinstance(pooling_params, PoolingParams):
            raise _arguments.wrong_type("pooling_params", pooling_params, "PoolingParams")
        _check_rest("encode", others)
        fields = pooling_params.fields() if pooling_params is not None else {}
        body = {**text_request(prompt, None, "input"), **fields}
        async for state in self._stream("embedding", body, prompt_text(prompt), None, request_id):
            if state.embedding is not None:
                yield state.pooling_output()

    async def embed(self, prompt: PromptType) -> EmbeddingRequestOutput:
        """Returns an embedding of length 1: that of the prompt's last token."""
        body = text_request(prompt, None, "input")
        async for state in self._stream("embedding", body, prompt_text(prompt), None, None):
            if state.embedding is not None:
                return state.embedding_output()
        raise RuntimeError("the request was ended")

    async def get_tokenizer(self) -> Tokenizer:
        """Returns the model's tokenizer."""
        return Tokenizer(self._open())

    def get_default_sampling_params(self) -> SamplingParams:
        """Returns the parameters of requests without any: vLLM's, and of those what the model recommends."""
        return default_params(self._open())

    async def reset_prefix_cache(self) -> bool:
        """Empties the cache: the next prompts are computed from their first token."""
        self._open().reset_prefix_cache()
        return True

    async def abort(self, request_id: str) -> None:
        """Ends a request: its generator yields what there is, with "abort" as finish_reason, and stops."""
        batch = self._running.get(request_id)
        if batch is not None:
            batch.cancel()

    def shutdown(self) -> None:
        """Ends all requests and gives the model's memory back."""
        for batch in list(self._running.values()):
            batch.cancel()
        self._model = None

    close = shutdown

    def __getattr__(self, name: str) -> Any:
        raise _foreign.missing(type(self).__name__, name, _foreign.MISSING_METHODS)

    def _open(self) -> "_pagoda.Model":
        if self._model is None:
            raise RuntimeError("the AsyncLLM is closed")
        return self._model

    def _params(self, params: Any) -> SamplingParams:
        return self.get_default_sampling_params() if params is None else check_params(params)

    async def _stream(
        self,
        kind: str,
        body: Mapping[str, Any],
        text: Optional[str],
        params: Optional[SamplingParams],
        request_id: Optional[str],
    ) -> AsyncIterator[RequestState]:
        name = request_id if request_id is not None else str(next(self._numbers))
        if name in self._running:
            raise ValueError(f"request_id: '{name}' is running already")
        model = self._open()
        batch = _pagoda.Batch(model)
        loop = asyncio.get_running_loop()
        arrived = asyncio.Event()
        self._running[name] = batch
        try:
            submit(batch, kind, body, params)
            state = RequestState(name, text, params)
            state.decode = Tokenizer(model).decode if kind == "chat" else None
            while batch.unfinished:
                await _wait(loop, batch, arrived)
                news = read_news(batch, 0)
                for each in news:
                    state.take(each)
                if news:
                    yield state
            if not state.finished:
                state.abort()
                yield state
        finally:
            del self._running[name]
            batch.cancel()


AsyncLLMEngine = AsyncLLM  # as older scripts call it


def _check_rest(method: str, others: Mapping[str, Any]) -> None:
    known = ("sampling_params", "request_id", "pooling_params", "tools", "chat_template_kwargs")
    _arguments.check(f"AsyncLLM.{method}", others, known, _foreign.METHOD_IGNORED, _foreign.METHOD_REFUSED)


async def _wait(loop: asyncio.AbstractEventLoop, batch: "_pagoda.Batch", arrived: asyncio.Event) -> None:
    """Waits for news, and looks now and then whether somebody ended the request.

    The loop looks at the batch only meanwhile: it would be busy with news that nobody takes.
    """

    def wake() -> None:
        loop.remove_reader(batch.fileno())
        arrived.set()

    arrived.clear()
    loop.add_reader(batch.fileno(), wake)
    try:
        await asyncio.wait_for(arrived.wait(), 0.1)
    except asyncio.TimeoutError:
        pass
    finally:
        loop.remove_reader(batch.fileno())
