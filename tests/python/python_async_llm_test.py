"""AsyncLLM: outputs as they come, several at once, and ends before the end."""

import asyncio
import sys
import unittest

from python_case import SMALL, STORIES

import python_tests
from pagoda import LLM, AsyncLLM, SamplingParams

PROMPTS = ["Once upon a time", "The dog", "A cat"]
# More than the engine computes before somebody takes what it has.
PARAMS = SamplingParams(temperature=0.0, max_tokens=300, ignore_eos=True)
CONTEXT = {"max_model_len": 20000}


class Streams(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.llm = AsyncLLM(STORIES, **CONTEXT, **SMALL)

    async def texts(self, prompt):
        return [output.outputs[0].text async for output in self.llm.generate(prompt, PARAMS)]

    async def test_each_output_goes_on_from_the_last_and_ends_as_that_of_llm(self):
        streams = await asyncio.gather(*(self.texts(prompt) for prompt in PROMPTS))
        with LLM(STORIES, **CONTEXT, **SMALL) as llm:
            whole = [output.outputs[0].text for output in llm.generate(PROMPTS, PARAMS)]
        self.assertEqual([stream[-1] for stream in streams], whole)
        for stream in streams:
            self.assertGreater(len(stream), 1)
            for earlier, later in zip(stream, stream[1:]):
                self.assertTrue(later.startswith(earlier))

    async def test_a_generator_that_is_closed_ends_its_request(self):
        endless = SamplingParams(temperature=0.0, max_tokens=15000, ignore_eos=True)
        stream = self.llm.generate("Once", endless)
        await stream.__anext__()
        self.assertEqual(self.llm._model.sequences_running, 1)
        await stream.aclose()
        while self.llm._model.sequences_running > 0:
            await asyncio.sleep(0.01)

    async def test_abort_stops_the_generator(self):
        endless = SamplingParams(temperature=0.0, max_tokens=15000, ignore_eos=True)
        outputs = []
        async for output in self.llm.generate("Once", endless, request_id="mine"):
            outputs.append(output)
            self.assertEqual(output.request_id, "mine")
            await self.llm.abort("mine")
        self.assertFalse(outputs[-1].finished)

    async def test_a_refused_request_raises(self):
        with self.assertRaisesRegex(ValueError, "top_p"):
            await self.llm.generate("Once", SamplingParams(top_p=3.0)).__anext__()


if __name__ == "__main__":
    python_tests.run(sys.modules[__name__])
