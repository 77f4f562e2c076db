"""The langchain-openai package works with the server, by a model whose answers are known
(tests/data/make_scripted_model.py)."""

import asyncio
import json
import os
import sys
import typing
import unittest

import openai
import pydantic
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

import served

SCRIPTED = os.path.join(served.SOURCE, "tests/data/models/scripted_calls.gguf")


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"21 in {city}"


class Weather(pydantic.BaseModel):
    """What the weather is."""

    city: typing.Literal["Rome", "Paris"]
    degrees: int = pydantic.Field(ge=10, le=30)


class LangChain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = served.Served(SCRIPTED)
        cls.model = cls.chat_model()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    @classmethod
    def chat_model(cls, **more):
        return ChatOpenAI(**{"model": "scripted_calls", "base_url": cls.server.url + "/v1",
                             "api_key": "none", "temperature": 0, "max_retries": 0, **more})

    def test_a_chat(self):
        reply = self.model.invoke("How warm is it?")
        self.assertIn("Let me ask.", reply.content)
        self.assertGreater(reply.usage_metadata["input_tokens"], 0)
        self.assertGreater(reply.usage_metadata["output_tokens"], 0)

    def test_a_stream_says_what_the_whole_reply_says(self):
        model = self.model.bind_tools([get_weather])
        whole = model.invoke("How warm is it?")
        streamed = None
        for chunk in model.stream("How warm is it?"):
            streamed = chunk if streamed is None else streamed + chunk
        self.assertEqual(streamed.content, whole.content)
        self.assertEqual([(call["name"], call["args"]) for call in streamed.tool_calls],
                         [("get_weather", {"city": "Rome"})])
        self.assertEqual([(call["name"], call["args"]) for call in whole.tool_calls],
                         [("get_weather", {"city": "Rome"})])

    def test_a_loop_of_three_calls(self):
        model = self.model.bind_tools([get_weather])
        messages = []
        for _ in range(3):
            messages.append(HumanMessage("How warm is it?"))
            reply = model.invoke(messages)
            self.assertIsInstance(reply, AIMessage)
            self.assertEqual(reply.response_metadata["finish_reason"], "tool_calls")
            messages.append(reply)
            for call in reply.tool_calls:
                result = get_weather.invoke(call)
                self.assertIsInstance(result, ToolMessage)
                self.assertEqual(result.content, "21 in Rome")
                messages.append(result)
            answer = model.invoke(messages)
            self.assertEqual(answer.content, "It is 21 degrees.")
            messages.append(answer)
        self.assertEqual(len({call["id"] for message in messages
                              for call in getattr(message, "tool_calls", [])}), 3)

    def test_structured_output_is_a_value_of_its_class(self):
        for method in ("json_schema", "function_calling"):
            with self.subTest(method=method):
                model = self.chat_model(max_tokens=400).with_structured_output(Weather, method=method, include_raw=True)
                got = model.invoke("How warm is it?")
                self.assertIsNone(got["parsing_error"], got)
                self.assertIsInstance(got["parsed"], Weather)

    def test_structured_output_is_streamed(self):
        model = self.chat_model(max_tokens=400).with_structured_output(Weather, method="json_schema")
        *_, last = model.stream("How warm is it?")
        self.assertEqual(last, model.invoke("How warm is it?"))

    def test_errors_have_their_status_and_path(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            self.model.invoke([ToolMessage("21", tool_call_id="x")])
        self.assertEqual(raised.exception.param, "messages[0]")
        with self.assertRaises(openai.NotFoundError):
            self.chat_model(model="another").invoke("Hi")

    def test_a_stream_that_is_left_is_cancelled(self):
        async def leave(server):
            model = self.chat_model(model="stories260K", base_url=server.url + "/v1",
                                    max_tokens=450, n=32, temperature=1,
                                    extra_body={"ignore_eos": True})
            stream = model.astream("Tell me of Tom.")
            await anext(stream)
            await stream.aclose()

        with served.ChatServed("--log-format", "json") as server:
            asyncio.run(leave(server))
            served.wait_until(server.is_at_rest)
            served.wait_until(server.stderr)
            line = json.loads(server.stderr().splitlines()[0])
            self.assertEqual(line["finish_reason"], "cancelled")


if __name__ == "__main__":
    served.run(sys.modules[__name__])
