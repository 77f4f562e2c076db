"""The openai package against the server: sync, async, streams, errors, cancellation."""

import asyncio
import json
import sys
import unittest

import openai

import served

MESSAGES = [
    {"role": "system", "content": "You tell stories."},
    {"role": "user", "content": "Tell me of Tom."},
]


class OpenAiClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = served.ChatServed()
        cls.options = {"base_url": cls.server.url + "/v1", "api_key": "none", "max_retries": 0}
        cls.client = openai.OpenAI(**cls.options)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.stop()

    def chat(self, **more):
        return self.client.chat.completions.create(
            **{"model": "stories260K", "messages": MESSAGES, "temperature": 0, "max_tokens": 16,
               **more}
        )

    def complete(self, **more):
        return self.client.completions.create(
            **{"model": "stories260K", "prompt": "Once upon a time", "temperature": 0,
               "max_tokens": 16, **more}
        )

    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["stories260K"])

    def test_chat_and_its_stream_agree(self):
        whole = self.chat(logprobs=True, top_logprobs=2)
        chunks = list(
            self.chat(logprobs=True, top_logprobs=2, stream=True,
                      stream_options={"include_usage": True})
        )
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        scores = [e for c in chunks if c.choices and c.choices[0].logprobs
                  for e in c.choices[0].logprobs.content]
        self.assertEqual(scores, whole.choices[0].logprobs.content)
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)
        self.assertEqual(
            chunks[-1].usage.prompt_tokens_details.cached_tokens, whole.usage.prompt_tokens - 1
        )

    def test_completions_of_text_ids_and_batches(self):
        text = self.complete(extra_body={"return_token_ids": True})
        ids = text.choices[0].prompt_token_ids
        self.assertEqual(self.complete(prompt=ids).choices[0].text, text.choices[0].text)
        batch = self.complete(prompt=[ids, ids], n=2)
        self.assertEqual([c.text for c in batch.choices], [text.choices[0].text] * 4)
        self.assertEqual([c.index for c in batch.choices], [0, 1, 2, 3])
        streamed = "".join(c.choices[0].text for c in self.complete(stream=True))
        self.assertEqual(streamed, text.choices[0].text)
        echo = self.complete(echo=True, logprobs=1)
        self.assertEqual(echo.choices[0].text, "Once upon a time" + text.choices[0].text)

    def test_embeddings_are_the_same_as_floats_and_as_base64(self):
        texts = ["Once upon a time", "There was a cat."]
        by_default = self.client.embeddings.create(model="stories260K", input=texts)
        floats = self.client.embeddings.create(model="stories260K", input=texts,
                                               encoding_format="float")
        self.assertEqual([e.index for e in floats.data], [0, 1])
        for one, other in zip(by_default.data, floats.data):
            self.assertEqual(len(one.embedding), 64)
            for a, b in zip(one.embedding, other.embedding):
                self.assertAlmostEqual(a, b, places=7)
        self.assertGreater(floats.usage.prompt_tokens, 4)

    def test_stop_and_seed(self):
        self.assertEqual(self.complete(stop=[" there"]).choices[0].text, ",")
        drawn = self.complete(temperature=1.0, seed=4)
        again = self.complete(temperature=1.0, seed=4)
        self.assertEqual(drawn.choices[0].text, again.choices[0].text)

    def test_errors_are_those_the_client_knows(self):
        with self.assertRaises(openai.NotFoundError):
            self.chat(model="another")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(temperature=-1)
        self.assertEqual(caught.exception.param, "temperature")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(response_format={"type": "json_schema", "json_schema": {
                "name": "x", "schema": {"type": "object", "not": {}}}})
        self.assertEqual(caught.exception.param, "response_format.json_schema.schema")
        self.assertIn("/not: this keyword is not supported", str(caught.exception))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.complete(prompt=[5] * 600)
        self.assertEqual(caught.exception.code, "context_length_exceeded")

    def test_an_answer_obeys_its_schema(self):
        schema = {"type": "object", "properties": {
            "name": {"type": "string", "maxLength": 8}, "kind": {"enum": ["cat", "dog"]}},
            "required": ["name", "kind"], "additionalProperties": False}
        asked = {"type": "json_schema", "json_schema": {"name": "pet", "schema": schema, "strict": True}}
        reply = self.chat(response_format=asked, max_tokens=120)
        value = json.loads(reply.choices[0].message.content)
        self.assertEqual(sorted(value), ["kind", "name"])
        self.assertIn(value["kind"], ["cat", "dog"])
        chosen = self.complete(extra_body={"guided_choice": ["yes", "no"]})
        self.assertIn(chosen.choices[0].text, ["yes", "no"])

    def test_leaving_a_stream_cancels_it(self):
        stream = self.complete(stream=True, max_tokens=450, n=32, temperature=1.0,
                               extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()
        served.wait_until(lambda: self.server.snapshot()["now"]["answers_running"] == 0)

    def test_many_at_once(self):
        async def ask_all():
            async with openai.AsyncOpenAI(**self.options) as client:
                async def whole(i):
                    reply = await client.chat.completions.create(
                        model="stories260K", messages=MESSAGES, temperature=0, max_tokens=8 + i)
                    return reply.choices[0].message.content

                async def streamed(i):
                    stream = await client.chat.completions.create(
                        model="stories260K", messages=MESSAGES, temperature=0, max_tokens=8 + i,
                        stream=True)
                    return "".join([c.choices[0].delta.content or "" async for c in stream])

                return await asyncio.gather(*(whole(i) for i in range(8)),
                                            *(streamed(i) for i in range(8)))

        answers = asyncio.run(ask_all())
        for i in range(8):
            alone = self.chat(max_tokens=8 + i).choices[0].message.content
            self.assertEqual(answers[i], alone)
            self.assertEqual(answers[8 + i], alone)

    def test_cancelling_a_task_cancels_its_request(self):
        async def ask_and_leave():
            async with openai.AsyncOpenAI(**self.options) as client:
                task = asyncio.create_task(
                    client.completions.create(
                        model="stories260K", prompt="Once", max_tokens=450, n=32,
                        temperature=1.0, extra_body={"ignore_eos": True}))
                while self.server.snapshot()["now"]["answers_running"] == 0:
                    await asyncio.sleep(0.01)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task

        asyncio.run(ask_and_leave())
        served.wait_until(lambda: self.server.snapshot()["now"]["answers_running"] == 0)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
