"""AsyncLLM: outputs as they come, several at once, and ends before the end."""

import asyncio
import sys
import unittest

from python_case import SMALL, STORIES

import python_tests
from pagoda import LLM, AsyncEngineArgs, AsyncLLM, AsyncLLMEngine, SamplingParams

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
        self.assertFalse(outputs[0].finished)
        self.assertTrue(outputs[-1].finished)
        self.assertEqual(outputs[-1].outputs[0].finish_reason, "abort")
        self.assertTrue(outputs[-1].outputs[0].text.startswith(outputs[0].outputs[0].text))

    async def test_a_refused_request_raises(self):
        with self.assertRaisesRegex(ValueError, "max_tokens"):
            await self.llm.generate("Once", SamplingParams(max_tokens=10**6)).__anext__()
        with self.assertRaisesRegex(TypeError, "^sampling_params: is {}"):
            await self.llm.generate("Once", {}).__anext__()

    async def test_without_parameters_they_are_the_default_ones(self):
        outputs = [output async for output in self.llm.generate("Once")]
        self.assertEqual(len(outputs[-1].outputs[0].token_ids), 16)

    async def test_it_embeds_and_has_a_tokenizer_as_llm(self):
        with LLM(STORIES, **CONTEXT, **SMALL) as llm:
            theirs = llm.embed("Once")[0].outputs.embedding
            ids = llm.get_tokenizer().encode("Once")
        self.assertEqual((await self.llm.embed("Once")).outputs.embedding, theirs)
        self.assertEqual([output.outputs.data async for output in self.llm.encode("Once")], [theirs])
        self.assertEqual((await self.llm.get_tokenizer()).encode("Once"), ids)

    async def test_a_closed_model_ends_its_requests_and_says_so(self):
        other = AsyncLLMEngine.from_engine_args(AsyncEngineArgs(model=STORIES, **CONTEXT, **SMALL))
        endless = SamplingParams(temperature=0.0, max_tokens=15000, ignore_eos=True)
        outputs = []
        async for output in other.generate("Once", endless):
            outputs.append(output)
            other.shutdown()
        self.assertEqual(outputs[-1].outputs[0].finish_reason, "abort")
        with self.assertRaisesRegex(RuntimeError, "closed"):
            await other.embed("Once")


if __name__ == "__main__":
    python_tests.run(sys.modules[__name__])
