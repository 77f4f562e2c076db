"""Tool calls and reasoning through the openai package, by a model whose answers are known
(tests/data/make_scripted_model.py)."""

import json
import os
import subprocess
import sys
import typing
import unittest

import openai
import pydantic

import served

MODEL = os.path.join(served.SOURCE, "tests/data/models/scripted_calls.gguf")
TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}},
                   "required": ["city"]}}}]
USER = {"role": "user", "content": "How warm is it?"}


class ToolCalls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = served.Served(MODEL)
        cls.client = openai.OpenAI(base_url=cls.server.url + "/v1", api_key="none", max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.stop()

    def chat(self, messages, **more):
        return self.client.chat.completions.create(
            **{"model": "scripted_calls", "messages": messages, "temperature": 0, "tools": TOOLS,
               **more})

    def expect_call(self, message):
        self.assertEqual(message.content, "Let me ask.")
        self.assertEqual(message.reasoning_content, "I look it up.")
        self.assertEqual(message.reasoning, "I look it up.")
        self.assertEqual(len(message.tool_calls), 1)
        call = message.tool_calls[0]
        self.assertEqual(call.type, "function")
        self.assertEqual(call.function.name, "get_weather")
        self.assertEqual(json.loads(call.function.arguments), {"city": "Rome"})
        return call

    def test_a_loop_of_three_calls_finds_all_it_wrote_in_the_cache(self):
        messages = [USER]
        written = 0
        for _ in range(3):
            reply = self.chat(messages)
            self.assertEqual(reply.choices[0].finish_reason, "tool_calls")
            cached = reply.usage.prompt_tokens_details.cached_tokens
            # All but the last token, which was sampled and never fed.
            self.assertGreaterEqual(cached, written - 1)
            message = reply.choices[0].message
            call = self.expect_call(message)
            messages.append(message.model_dump(exclude_none=True))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "21"})
            reply = self.chat(messages)
            self.assertEqual(reply.choices[0].finish_reason, "stop")
            self.assertEqual(reply.choices[0].message.content, "It is 21 degrees.")
            self.assertIsNone(reply.choices[0].message.tool_calls)
            messages.append({"role": "assistant", "content": "It is 21 degrees."})
            messages.append(USER)
            written = reply.usage.prompt_tokens + reply.usage.completion_tokens - 1

    def test_a_stream_names_a_call_once(self):
        content = reasoning = arguments = ""
        ids, names, finish = [], [], None
        for chunk in self.chat([USER], stream=True):
            choice = chunk.choices[0]
            finish = choice.finish_reason or finish
            content += choice.delta.content or ""
            reasoning += getattr(choice.delta, "reasoning_content", None) or ""
            for call in choice.delta.tool_calls or []:
                self.assertEqual(call.index, 0)
                ids += [call.id] if call.id else []
                names += [call.function.name] if call.function.name else []
                arguments += call.function.arguments or ""
        self.assertEqual((content, reasoning), ("Let me ask.", "I look it up."))
        self.assertEqual((len(ids), names, finish), (1, ["get_weather"], "tool_calls"))
        self.assertEqual(json.loads(arguments), {"city": "Rome"})

    def test_the_packages_own_stream_reader_puts_calls_together(self):
        with self.client.chat.completions.stream(
                model="scripted_calls", messages=[USER], temperature=0, tools=TOOLS) as stream:
            self.expect_call(stream.get_final_completion().choices[0].message)

    def test_reasoning_that_a_client_leaves_out_is_named(self):
        question = {"role": "user", "content": "And how warm is it elsewhere?"}
        message = self.chat([question]).choices[0].message.model_dump(exclude_none=True)
        for name in ("reasoning", "reasoning_content"):
            del message[name]
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "21"}
        reply = self.chat([question, message, result], extra_body={"cache_explain": True})
        why = reply.model_extra["cache_explain"]
        self.assertEqual(why["reason"], "differs")
        self.assertEqual(why["stored"]["text"], "<think>\n")
        self.assertIn("lacks the reasoning that the model wrote", why["advice"])

    def test_a_tool_that_must_be_called_is_called_behind_the_reasoning(self):
        ping = {"type": "function", "function": {"name": "ping", "parameters": {
            "type": "object", "properties": {"times": {"enum": [1, 2]}}, "required": ["times"]}}}
        named = {"type": "function", "function": {"name": "ping"}}
        allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}}
        for choice, name in (("required", "get_weather"), (named, "ping"), (allowed, "ping")):
            reply = self.chat([USER], tools=TOOLS + [ping], tool_choice=choice,
                              parallel_tool_calls=False)
            self.assertEqual(reply.choices[0].finish_reason, "tool_calls")
            message = reply.choices[0].message
            self.assertIsNone(message.content)
            self.assertEqual(message.reasoning_content, "I look it up.")
            self.assertEqual([call.function.name for call in message.tool_calls], [name])
            arguments = json.loads(message.tool_calls[0].function.arguments)
            if name == "ping":
                self.assertIn(arguments["times"], [1, 2])
            else:
                self.assertEqual(arguments, {"city": "Rome"})

    def test_a_strict_tool_is_called_with_arguments_of_its_schema(self):
        strict = json.loads(json.dumps(TOOLS))
        strict[0]["function"]["strict"] = True
        self.expect_call(self.chat([USER], tools=strict).choices[0].message)
        strict[0]["function"]["parameters"]["properties"]["city"] = {"enum": ["Oslo", "Bern"]}
        message = self.chat([USER], tools=strict).choices[0].message
        self.assertEqual(message.content, "Let me ask.")
        self.assertIn(json.loads(message.tool_calls[0].function.arguments)["city"],
                      ["Oslo", "Bern"])

    def test_an_answer_obeys_its_schema_behind_the_reasoning(self):
        class Weather(pydantic.BaseModel):
            warm: bool
            sky: typing.Literal["grey", "blue"]

        with self.client.chat.completions.stream(
                model="scripted_calls", messages=[USER], temperature=0,
                response_format=Weather) as stream:
            streamed = stream.get_final_completion().choices[0].message
        parsed = self.client.chat.completions.parse(
            model="scripted_calls", messages=[USER], temperature=0, response_format=Weather)
        message = parsed.choices[0].message
        self.assertEqual(message.reasoning_content, "I look it up.")
        self.assertIn(message.parsed.sky, ["grey", "blue"])
        self.assertEqual(streamed.parsed, message.parsed)

    def test_no_calls_where_none_are_wanted(self):
        message = self.chat([USER], tool_choice="none").choices[0].message
        self.assertIsNone(message.tool_calls)
        # The markers are control tokens, which clients do not see.
        self.assertEqual(message.content, 'Let me ask.\n\n{"name": "get_weather", "arguments": '
                                          '{"city": "Rome"}}\n')

    def test_a_result_without_a_call_is_an_error_with_its_path(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            self.chat([USER, {"role": "tool", "tool_call_id": "x", "content": "1"}])
        self.assertEqual(raised.exception.param, "messages[1]")

    def test_the_template_loses_nothing_and_the_check_says_so(self):
        checked = subprocess.run([served.BINARY, "template", "check", MODEL, "--json"],
                                 capture_output=True, text=True, check=True)
        report = json.loads(checked.stdout)
        self.assertEqual(report["tool_calls"]["from"], "derived")
        self.assertEqual(report["tool_calls"]["call_begin"], "<tool_call>\n")
        self.assertEqual(report["reasoning"]["end"], "\n</think>\n\n")
        lost = {entry["conversation"]: sum(turn["lost_tokens"] for turn in entry["turns"])
                for entry in report["next_turns"]}
        self.assertEqual(lost["chat, thinking off"], 0)
        self.assertEqual(lost["reasoning sent back"], 0)
        self.assertEqual(lost["tools, reasoning sent back"], 0)
        self.assertGreater(lost["reasoning left out"], 0)

    def test_an_unknown_parser_is_named_with_those_that_are_known(self):
        refused = subprocess.run(
            [served.BINARY, "serve", MODEL, "--port", "0", "--tool-call-parser", "hermse"],
            capture_output=True, text=True)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("--tool-call-parser", refused.stderr)
        self.assertIn("hermes", refused.stderr)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
