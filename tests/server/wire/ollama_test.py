"""The ollama package against the server: chats, streams, tools, models, errors."""

import os
import sys
import unittest

import ollama

import served

SCRIPTED = os.path.join(served.SOURCE, "tests/data/models/scripted_calls.gguf")
TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}},
                   "required": ["city"]}}}]
USER = {"role": "user", "content": "How warm is it?"}
OPTIONS = {"temperature": 0}


class Ollama(unittest.TestCase):
    """By a model whose answers are known (tests/data/make_scripted_model.py)."""

    @classmethod
    def setUpClass(cls):
        cls.server = served.Served(SCRIPTED)
        cls.client = ollama.Client(host=cls.server.url)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def chat(self, messages, **more):
        return self.client.chat(model="scripted_calls", messages=messages, tools=TOOLS,
                                options=OPTIONS, **more)

    def test_a_call_and_its_result(self):
        message = self.chat([USER]).message
        self.assertEqual((message.thinking, message.content), ("I look it up.", "Let me ask."))
        call = message.tool_calls[0].function
        self.assertEqual((call.name, call.arguments), ("get_weather", {"city": "Rome"}))
        reply = self.chat([USER, message, {"role": "tool", "content": "21",
                                           "tool_name": "get_weather"}])
        self.assertEqual(reply.message.content, "It is 21 degrees.")
        self.assertEqual(reply.done_reason, "stop")

    def test_streams_say_what_whole_replies_say(self):
        parts = list(self.chat([USER], stream=True))
        self.assertEqual("".join(p.message.content for p in parts), "Let me ask.")
        self.assertEqual("".join(p.message.thinking or "" for p in parts), "I look it up.")
        calls = [call for p in parts for call in p.message.tool_calls or []]
        self.assertEqual([dict(c.function.arguments) for c in calls], [{"city": "Rome"}])
        self.assertEqual([p.done for p in parts], [False] * (len(parts) - 1) + [True])
        self.assertEqual(parts[-1].eval_count, self.chat([USER]).eval_count)

    def test_generate(self):
        reply = self.client.generate(model="scripted_calls", prompt="Hi", options=OPTIONS)
        self.assertTrue(reply.response.startswith("Let me ask."))
        text = "".join(p.response for p in self.client.generate(
            model="scripted_calls", prompt="Hi", options=OPTIONS, stream=True))
        self.assertEqual(text, reply.response)

    def test_models(self):
        self.assertEqual([m.model for m in self.client.list().models], ["scripted_calls:latest"])
        self.assertEqual(self.client.show("scripted_calls").capabilities,
                         ["completion", "tools", "thinking"])

    def test_errors_are_those_the_client_knows(self):
        for status, call in ((404, lambda: self.client.show("other")),
                             (400, lambda: self.chat([{"role": "nobody", "content": "x"}]))):
            with self.assertRaises(ollama.ResponseError) as raised:
                call()
            self.assertEqual(raised.exception.status_code, status)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
