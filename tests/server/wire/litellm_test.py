"""The litellm package works with the server through the APIs that it speaks to such servers, by a
model whose answers are known (tests/data/make_scripted_model.py)."""

import json
import os
import sys
import unittest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # nothing is fetched
import litellm  # noqa: E402

import served  # noqa: E402

SCRIPTED = os.path.join(served.SOURCE, "tests/data/models/scripted_calls.gguf")
TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}},
                   "required": ["city"]}}}]
USER = {"role": "user", "content": "How warm is it?"}


class LiteLlm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = served.Served(SCRIPTED)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def chat(self, messages, provider="openai", **more):
        base = self.server.url + ("" if provider == "anthropic" else "/v1")
        return litellm.completion(**{
            "model": f"{provider}/scripted_calls", "api_base": base, "api_key": "none",
            "messages": messages, "temperature": 0, "max_tokens": 64, "tools": TOOLS,
            "num_retries": 0, **more})

    def expect_call(self, message):
        self.assertEqual(message.content, "Let me ask.")
        call, = message.tool_calls
        self.assertEqual(call.function.name, "get_weather")
        self.assertEqual(json.loads(call.function.arguments), {"city": "Rome"})
        return call

    def loop(self, provider):
        messages = []
        for _ in range(3):
            messages.append(USER)
            reply = self.chat(messages, provider)
            self.assertEqual(reply.choices[0].finish_reason, "tool_calls")
            call = self.expect_call(reply.choices[0].message)
            messages.append(reply.choices[0].message.model_dump(exclude_none=True))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "21"})
            reply = self.chat(messages, provider)
            self.assertEqual(reply.choices[0].message.content, "It is 21 degrees.")
            messages.append({"role": "assistant", "content": "It is 21 degrees."})

    def test_a_loop_of_three_calls_as_openai(self):
        self.loop("openai")

    def test_a_loop_of_three_calls_as_vllm(self):
        self.loop("hosted_vllm")

    def test_a_loop_of_three_calls_as_anthropic(self):
        self.loop("anthropic")

    def test_as_ollama(self):
        """They name no Content-Type."""
        for provider in ("ollama", "ollama_chat"):
            for stream in (False, True):
                reply = litellm.completion(model=f"{provider}/scripted_calls", api_base=self.server.url,
                                           messages=[USER], temperature=0, num_retries=0, stream=stream)
                if stream:
                    reply = litellm.stream_chunk_builder(list(reply), messages=[USER])
                self.assertTrue(reply.choices[0].message.content.startswith("Let me ask."), (provider, stream))

    def test_streams(self):
        for provider in ("openai", "anthropic"):
            chunks = list(self.chat([USER], provider, stream=True))
            whole = litellm.stream_chunk_builder(chunks, messages=[USER])
            self.expect_call(whole.choices[0].message)
            self.assertEqual(whole.choices[0].finish_reason, "tool_calls")

    def test_an_answer_obeys_its_schema(self):
        """The script calls tools in free text: a grammar makes it write what it never would."""
        schema = {"type": "object", "properties": {"city": {"enum": ["Rome", "Paris"]},
                                                   "degrees": {"type": "integer", "minimum": 10, "maximum": 30}},
                  "required": ["city", "degrees"], "additionalProperties": False}
        asked = {"type": "json_schema", "json_schema": {"name": "weather", "schema": schema, "strict": True}}
        for provider in ("openai", "hosted_vllm"):
            for stream in (False, True):
                with self.subTest(provider=provider, stream=stream):
                    reply = self.chat([USER], provider, tools=None, response_format=asked,
                                      stream=stream, max_tokens=400)
                    if stream:
                        reply = litellm.stream_chunk_builder(list(reply), messages=[USER])
                    value = json.loads(reply.choices[0].message.content)
                    self.assertEqual(list(value), ["city", "degrees"])
                    self.assertIn(value["city"], ("Rome", "Paris"))
                    self.assertTrue(10 <= value["degrees"] <= 30, value)

    def test_a_schema_that_no_grammar_obeys_is_refused_with_its_place(self):
        asked = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object", "not": {}}}}
        with self.assertRaises(litellm.BadRequestError) as raised:
            self.chat([USER], tools=None, response_format=asked)
        self.assertIn("/not: this keyword is not supported", str(raised.exception))

    def test_a_tool_that_must_be_called_gets_arguments_of_its_schema(self):
        tool = {"type": "function", "function": {
            "name": "set_alarm", "parameters": {
                "type": "object", "properties": {"hour": {"type": "integer", "minimum": 0, "maximum": 23}},
                "required": ["hour"], "additionalProperties": False}}}
        for provider in ("openai", "anthropic"):
            with self.subTest(provider=provider):
                reply = self.chat([USER], provider, tools=[tool], tool_choice="required",
                                  parallel_tool_calls=False, max_tokens=400)
                call, = reply.choices[0].message.tool_calls
                self.assertEqual(call.function.name, "set_alarm")
                self.assertTrue(0 <= json.loads(call.function.arguments)["hour"] <= 23)

    def test_errors_have_their_classes(self):
        result = {"role": "tool", "tool_call_id": "x", "content": "21"}
        with self.assertRaises(litellm.BadRequestError) as raised:
            self.chat([USER, result])
        self.assertIn("messages[1]", str(raised.exception))
        with self.assertRaises(litellm.NotFoundError):
            self.chat([USER], model="openai/another")

    def test_a_stream_that_is_left_is_cancelled(self):
        with served.ChatServed("--log-format", "json") as server:
            stream = litellm.completion(
                model="anthropic/stories260K", api_base=server.url, api_key="none",
                messages=[USER], max_tokens=10000, stream=True, num_retries=0, ignore_eos=True)
            next(iter(stream))
            stream.completion_stream.response_iterator.close()
            served.wait_until(server.is_at_rest)
            served.wait_until(server.stderr)
            line = json.loads(server.stderr().splitlines()[0])
            self.assertEqual(line["finish_reason"], "cancelled")


if __name__ == "__main__":
    served.run(sys.modules[__name__])
