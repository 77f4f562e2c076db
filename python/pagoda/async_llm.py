"""AsyncLLM: outputs as they come, for programs with an event loop."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Optional

from . import _pagoda
from ._requests import Prompt, RequestState, prompt_text, read_news, submit, text_request
from .llm import open_model
from .outputs import RequestOutput
from .sampling import SamplingParams


class AsyncLLM:
    """A model whose outputs are streamed. Arguments are those of LLM.

        async for output in llm.generate("Once upon a time", SamplingParams(max_tokens=64)):
            print(output.outputs[0].text)
    """

    def __init__(self, model: Optional[str] = None, **options: Any) -> None:
        self._model = open_model("AsyncLLM", model, options)
        self._numbers = itertools.count()
        self._running: dict[str, _pagoda.Batch] = {}

    async def generate(
        self, prompt: Prompt, sampling_params: Optional[SamplingParams] = None, request_id: Optional[str] = None
    ) -> AsyncIterator[RequestOutput]:
        """Yields all outputs of the prompt so far, each time that there is more of them.

        A generator that is closed, or whose task is cancelled, ends its request.
        """
        body = text_request(prompt, sampling_params)
        async for output in self._stream("text", body, prompt_text(prompt), sampling_params, request_id):
            yield output

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        sampling_params: Optional[SamplingParams] = None,
        request_id: Optional[str] = None,
    ) -> AsyncIterator[RequestOutput]:
        """The same for a conversation."""
        body = sampling_params.fields(is_chat=True) if sampling_params is not None else {}
        body["messages"] = list(messages)
        async for output in self._stream("chat", body, None, sampling_params, request_id):
            yield output

    async def abort(self, request_id: str) -> None:
        """Ends a request: its generator stops."""
        batch = self._running.get(request_id)
        if batch is not None:
            batch.cancel()

    async def _stream(
        self,
        kind: str,
        body: Mapping[str, Any],
        text: Optional[str],
        params: Optional[SamplingParams],
        request_id: Optional[str],
    ) -> AsyncIterator[RequestOutput]:
        name = request_id if request_id is not None else str(next(self._numbers))
        if name in self._running:
            raise ValueError(f"request_id: '{name}' is running already")
        batch = _pagoda.Batch(self._model)
        loop = asyncio.get_running_loop()
        arrived = asyncio.Event()
        self._running[name] = batch
        try:
            submit(batch, kind, body, params)
            state = RequestState(name, text, params)
            while batch.unfinished:
                await _wait(loop, batch, arrived)
                news = read_news(batch, 0)
                for each in news:
                    state.take(each)
                if news:
                    yield state.output()
        finally:
            del self._running[name]
            batch.cancel()


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
