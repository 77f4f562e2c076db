"""The openai package's responses against the server: items, streams, tools in a loop, errors,
cancellation."""

import json
import os
import sys
import typing
import unittest

import openai
import pydantic

import served

SCRIPTED = os.path.join(served.SOURCE, "tests/data/models/scripted_calls.gguf")
TOOLS = [{"type": "function", "name": "get_weather", "description": "The weather of a city.",
          "strict": False,
          "parameters": {"type": "object", "properties": {"city": {"type": "string"}},
                         "required": ["city"]}},
         {"type": "web_search"}]
USER = {"role": "user", "content": "How warm is it?"}


class Responses(unittest.TestCase):
    """By a model whose answers are known (tests/data/make_scripted_model.py)."""

    @classmethod
    def setUpClass(cls):
        cls.server = served.Served(SCRIPTED)
        cls.client = openai.OpenAI(base_url=cls.server.url + "/v1", api_key="none", max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.stop()

    def body(self, items, **more):
        return {"model": "scripted_calls", "input": items, "temperature": 0, "tools": TOOLS, **more}

    def expect_call(self, response):
        self.assertEqual(response.status, "completed")
        reasoning, message, call = response.output
        self.assertEqual((reasoning.type, message.type, call.type),
                         ("reasoning", "message", "function_call"))
        self.assertEqual(message.content[0].text, "Let me ask.")
        self.assertEqual((call.name, json.loads(call.arguments)), ("get_weather", {"city": "Rome"}))
        self.assertEqual(response.output_text, "Let me ask.")
        return call

    def test_a_loop_of_three_calls_finds_all_it_wrote_in_the_cache(self):
        items = [USER]
        written = 0
        for _ in range(3):
            reply = self.client.responses.create(**self.body(items))
            # All but the last token, which was sampled and never fed.
            self.assertGreaterEqual(reply.usage.input_tokens_details.cached_tokens, written - 1)
            call = self.expect_call(reply)
            self.assertEqual(reply.output[0].content[0].text, "I look it up.")
            items += reply.output
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": "21"})
            reply = self.client.responses.create(**self.body(items))
            self.assertEqual(reply.output_text, "It is 21 degrees.")
            items += reply.output
            items.append(USER)
            written = reply.usage.input_tokens + reply.usage.output_tokens - 1

    def test_the_packages_own_stream_reader_puts_items_together(self):
        for summary in (None, "auto"):
            with self.client.responses.stream(
                    **self.body([USER], reasoning={"summary": summary})) as stream:
                events = list(stream)
                response = stream.get_final_response()
            self.assertEqual([e.sequence_number for e in events], list(range(len(events))))
            self.expect_call(response)
            part = (response.output[0].summary if summary else response.output[0].content)[0]
            self.assertEqual(part.text, "I look it up.")
            self.assertGreater(response.usage.output_tokens_details.reasoning_tokens, 0)
            names = [event.type for event in events]
            self.assertEqual(names[:2], ["response.created", "response.in_progress"])
            self.assertEqual(names[-1], "response.completed")

    def test_what_comes_back_in_the_history_need_not_have_ids(self):
        reply = self.client.responses.create(**self.body(
            [USER, {"type": "function_call", "call_id": "c", "name": "get_weather",
                    "arguments": "{\"city\": \"Rome\"}"},
             {"type": "function_call_output", "call_id": "c", "output": "21"}],
            instructions="Be kind.", store=True))
        self.assertEqual(reply.output_text, "It is 21 degrees.")
        self.assertEqual(reply.instructions, "Be kind.")

    def test_a_cut_answer_is_incomplete(self):
        reply = self.client.responses.create(**self.body([USER], max_output_tokens=4))
        self.assertEqual(reply.status, "incomplete")
        self.assertEqual(reply.incomplete_details.reason, "max_output_tokens")
        self.assertEqual(reply.usage.output_tokens, 4)

    def test_a_tool_that_must_be_called_is_called(self):
        for choice in ("required", {"type": "function", "name": "get_weather"},
                       {"type": "allowed_tools", "mode": "required",
                        "tools": [{"type": "function", "name": "get_weather"}]}):
            reply = self.client.responses.create(**self.body([USER], tool_choice=choice))
            reasoning, call = reply.output
            self.assertEqual(reasoning.content[0].text, "I look it up.")
            self.assertEqual((call.name, json.loads(call.arguments)),
                             ("get_weather", {"city": "Rome"}))

    def test_an_answer_obeys_its_schema(self):
        class Weather(pydantic.BaseModel):
            warm: bool
            sky: typing.Literal["grey", "blue"]

        reply = self.client.responses.parse(
            model="scripted_calls", input=[USER], temperature=0, text_format=Weather)
        self.assertIn(reply.output_parsed.sky, ["grey", "blue"])

    def test_a_compaction_comes_in_items(self):
        for messages, kinds in (([USER], ["message"]),
                                ([USER, {"role": "assistant", "content": "21"}] * 6 + [USER], None)):
            reply = self.client.responses.compact(model="scripted_calls", input=messages)
            told = [item.type for item in reply.output]
            self.assertEqual(told, kinds or ["compaction"] + ["message"] * (len(told) - 1))
            for item in reply.output[len(told) - 1:]:
                self.assertRegex(item.id, "^msg_")
                self.assertEqual((item.content[0].type, item.content[0].text), ("input_text", USER["content"]))

    def test_errors_are_those_the_client_knows(self):
        image = {"type": "input_image", "image_url": "data:", "detail": "auto"}
        cases = [
            ({"input": [{"role": "user", "content": [image]}]}, "input[0].content[0].type"),
            ({"input": [{"type": "function_call_output", "call_id": "x", "output": "1"}]},
             "input[0].call_id"),
            ({"previous_response_id": "resp_1"}, "previous_response_id"),
            ({"tool_choice": "always"}, "tool_choice"),
            ({"text": {"format": {"type": "yaml"}}}, "text.format.type"),
        ]
        for change, path in cases:
            with self.assertRaises(openai.BadRequestError) as raised:
                self.client.responses.create(**{**self.body([USER]), **change})
            self.assertEqual(raised.exception.param, path)


class Leaving(unittest.TestCase):
    def test_a_stream_that_is_left_is_cancelled(self):
        with served.ChatServed("--log-format", "json") as server:
            client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
            stream = client.responses.create(model="stories260K", input="Once", stream=True,
                                             max_output_tokens=450,
                                             extra_body={"ignore_eos": True})
            next(iter(stream))
            stream.close()
            served.wait_until(server.is_at_rest)
            served.wait_until(server.stderr)
            line = json.loads(server.stderr().splitlines()[0])
            self.assertEqual((line["path"], line["finish_reason"]), ("/v1/responses", "cancelled"))


if __name__ == "__main__":
    served.run(sys.modules[__name__])
