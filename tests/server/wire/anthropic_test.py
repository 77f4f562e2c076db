"""The anthropic package against the server: messages, streams, tools in a loop, counts, errors,
keys, cancellation."""

import json
import os
import sys
import tempfile
import typing
import unittest

import anthropic
import pydantic

import served

SCRIPTED = os.path.join(served.SOURCE, "tests/data/models/scripted_calls.gguf")
TOOLS = [{"name": "get_weather", "description": "The weather of a city.",
          "input_schema": {"type": "object", "properties": {"city": {"type": "string"}},
                           "required": ["city"]}}]
USER = {"role": "user", "content": "How warm is it?"}
KEYS = ("tenant anna\nkey anna-key anna\ntenant bert\nkey bert-key bert\n"
        "tenant carl tokens_per_minute=100\nkey carl-key carl\n")


def client_of(server, key="none"):
    return anthropic.Anthropic(base_url=server.url, api_key=key, max_retries=0)


class Tools(unittest.TestCase):
    """By a model whose answers are known (tests/data/make_scripted_model.py)."""

    @classmethod
    def setUpClass(cls):
        cls.server = served.Served(SCRIPTED)
        cls.client = client_of(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.stop()

    def body(self, messages, **more):
        return {"model": "scripted_calls", "max_tokens": 1000, "messages": messages,
                "tools": TOOLS, "extra_body": {"temperature": 0}, **more}

    def expect_call(self, message):
        self.assertEqual(message.stop_reason, "tool_use")
        thinking, text, call = message.content
        self.assertEqual((thinking.type, thinking.thinking), ("thinking", "I look it up."))
        self.assertTrue(thinking.signature)
        self.assertEqual((text.type, text.text), ("text", "Let me ask."))
        self.assertEqual((call.type, call.name), ("tool_use", "get_weather"))
        self.assertEqual(call.input, {"city": "Rome"})
        return call

    def test_models_are_listed_in_its_own_words(self):
        listed, = list(self.client.models.list())
        self.assertEqual((listed.id, listed.type, listed.display_name), ("scripted_calls", "model", "scripted_calls"))
        self.assertEqual(self.client.models.retrieve("scripted_calls").created_at, listed.created_at)
        self.assertGreater(listed.created_at.year, 2025)
        self.assertFalse(self.client.models.list().has_more)
        with self.assertRaises(anthropic.NotFoundError):
            self.client.models.retrieve("other")
        self.assertEqual(self.server.get("/v1/models")[1]["object"], "list", "OpenAI's to others")

    def test_a_tool_that_must_be_used_is_used(self):
        for choice in ({"type": "any"}, {"type": "tool", "name": "get_weather"}):
            reply = self.client.messages.create(**self.body([USER], tool_choice=choice))
            self.assertEqual(reply.stop_reason, "tool_use")
            thinking, call = reply.content
            self.assertEqual(thinking.thinking, "I look it up.")
            self.assertEqual((call.name, call.input), ("get_weather", {"city": "Rome"}))

    def test_an_answer_obeys_its_schema(self):
        class Weather(pydantic.BaseModel):
            warm: bool
            sky: typing.Literal["grey", "blue"]

        reply = self.client.messages.parse(**self.body([USER], tools=[]), output_format=Weather)
        self.assertIn(reply.parsed_output.sky, ["grey", "blue"])

    def test_a_loop_of_three_calls_finds_all_it_wrote_in_the_cache(self):
        messages = [USER]
        written = 0
        for _ in range(3):
            reply = self.client.messages.create(**self.body(messages))
            # All but the last token, which was sampled and never fed.
            self.assertGreaterEqual(reply.usage.cache_read_input_tokens, written - 1)
            call = self.expect_call(reply)
            messages.append({"role": "assistant", "content": reply.content})
            messages.append({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": call.id, "content": "21"}]})
            reply = self.client.messages.create(**self.body(messages))
            self.assertEqual(reply.stop_reason, "end_turn")
            self.assertEqual([b.text for b in reply.content], ["It is 21 degrees."])
            messages.append({"role": "assistant", "content": reply.content})
            messages.append(USER)
            usage = reply.usage
            written = (usage.input_tokens + usage.cache_read_input_tokens + usage.output_tokens - 1)

    def test_the_packages_own_stream_reader_puts_blocks_together(self):
        with self.client.messages.stream(**self.body([USER])) as stream:
            names = [event.type for event in stream]
            message = stream.get_final_message()
        self.expect_call(message)
        self.assertEqual(names.count("content_block_start"), 3)
        self.assertEqual(names[0], "message_start")
        self.assertEqual(names[-1], "message_stop")
        self.assertGreater(message.usage.output_tokens, 0)
        whole = self.client.messages.create(**self.body([USER]))
        self.assertEqual(message.usage.output_tokens, whole.usage.output_tokens)

    def test_beta_messages_are_messages(self):
        reply = self.client.beta.messages.create(**self.body([USER]), betas=["any-2026-01-01"])
        self.assertEqual(reply.stop_reason, "tool_use")

    def test_counts_are_those_of_the_prompt(self):
        for more in ({}, {"system": [{"type": "text", "text": "Be kind."}]}):
            body = self.body([USER], **more)
            usage = self.client.messages.create(**body).usage
            del body["max_tokens"]
            counted = self.client.messages.count_tokens(**body)
            self.assertEqual(counted.input_tokens,
                             usage.input_tokens + usage.cache_read_input_tokens)

    def test_no_calls_where_none_are_wanted(self):
        reply = self.client.messages.create(**self.body([USER], tool_choice={"type": "none"}))
        self.assertEqual(reply.stop_reason, "end_turn")
        self.assertNotIn("tool_use", [block.type for block in reply.content])

    def test_errors_are_those_the_client_knows(self):
        image = {"type": "image",
                 "source": {"type": "base64", "media_type": "image/png", "data": ""}}
        cases = [
            ([{"role": "user", "content": [image]}], "messages[0].content[0].type"),
            ([USER, {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "x", "content": "1"}]}],
             "messages[1].content[0].tool_use_id"),
            ([{"role": "nobody", "content": "x"}], "messages[0].role"),
        ]
        for messages, path in cases:
            with self.assertRaises(anthropic.BadRequestError) as raised:
                self.client.messages.create(**self.body(messages))
            self.assertEqual(raised.exception.body["type"], "error")
            self.assertEqual(raised.exception.body["error"]["type"], "invalid_request_error")
            self.assertIn(path, raised.exception.body["error"]["message"])
        with self.assertRaises(anthropic.NotFoundError):
            self.client.messages.create(**{**self.body([USER]), "model": "claude"})

    def test_what_clients_ask_before_they_begin(self):
        reply, text = self.server.request("HEAD", "/")
        self.assertEqual((reply.status, text), (200, ""))
        reply, _ = self.server.request(
            "POST", "/v1/messages?beta=true",
            {"model": "scripted_calls", "max_tokens": 8, "messages": [USER]},
            {"anthropic-version": "2023-06-01", "anthropic-beta": "a,b"})
        self.assertEqual(reply.status, 200)


class Doors(unittest.TestCase):
    def test_keys_and_tenants_hold_as_in_chats(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "keys"), "w") as file:
                file.write(KEYS)
            flags = ["--api-keys", os.path.join(folder, "keys"),
                     "--secret-file", os.path.join(folder, "secret")]
            with served.Served(SCRIPTED, *flags) as server:
                body = {"model": "scripted_calls", "max_tokens": 100, "messages": [USER]}
                with self.assertRaises(anthropic.AuthenticationError) as raised:
                    client_of(server, "wrong").messages.create(**body)
                self.assertEqual(raised.exception.body["error"]["type"], "authentication_error")
                with self.assertRaises(anthropic.AuthenticationError):
                    client_of(server, "wrong").messages.count_tokens(
                        model="scripted_calls", messages=[USER])
                anna, bert = client_of(server, "anna-key"), client_of(server, "bert-key")
                anna.messages.create(**body)
                again = anna.messages.create(**body)
                self.assertGreater(again.usage.cache_read_input_tokens, 0)
                # Tenants share nothing.
                other = bert.messages.create(**body)
                self.assertEqual(other.usage.cache_read_input_tokens, 0)
                with self.assertRaises(anthropic.RateLimitError) as raised:
                    for _ in range(100):
                        client_of(server, "carl-key").messages.create(**body)
                self.assertEqual(raised.exception.body["error"]["type"], "rate_limit_error")
                # Both headers are doors; Authorization is asked first.
                bearer = anthropic.Anthropic(base_url=server.url, auth_token="anna-key",
                                             api_key=None, max_retries=0)
                self.assertGreater(
                    bearer.messages.create(**body).usage.cache_read_input_tokens, 0)
                twice = server.raw(
                    b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: anna-key\r\n"
                    b"X-Api-Key: bert-key\r\nConnection: close\r\n\r\n")
                self.assertIn(b" 400 ", twice.split(b"\r\n")[0])


class Leaving(unittest.TestCase):
    def test_a_stream_that_is_left_is_cancelled(self):
        with served.ChatServed("--log-format", "json") as server:
            client = client_of(server)
            stream = client.messages.create(
                model="stories260K", max_tokens=10000, stream=True, messages=[USER],
                extra_body={"ignore_eos": True})
            next(iter(stream))
            stream.close()
            served.wait_until(server.is_at_rest)
            served.wait_until(server.stderr)
            line = json.loads(server.stderr().splitlines()[0])
            self.assertEqual((line["path"], line["finish_reason"]), ("/v1/messages", "cancelled"))


if __name__ == "__main__":
    served.run(sys.modules[__name__])
