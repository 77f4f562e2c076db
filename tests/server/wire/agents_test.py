"""Requests in the shape of Codex (Responses) and Claude Code (Messages), with invented content, are
answered: tests/data/agents has every field that they send."""

import json
import os
import sys
import unittest

import served

SCRIPTED = os.path.join(served.SOURCE, "tests/data/models/scripted_calls.gguf")


def agent_body(name):
    with open(os.path.join(served.SOURCE, "tests/data/agents", name + ".json")) as file:
        return json.load(file)


def events_of(text):
    """The names and data of a stream's events."""
    for event in text.strip().split("\n\n"):
        name, data = event.split("\n", 1)
        yield name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


class Agents(unittest.TestCase):
    """By a model whose answers are known: behind a tool's result it says how warm it is, behind a
    user's words it calls a tool."""

    @classmethod
    def setUpClass(cls):
        cls.server = served.Served(SCRIPTED)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def ask(self, path, body):
        reply, text = self.server.request("POST", path, body)
        self.assertEqual(reply.status, 200, text)
        return text

    def test_codex(self):
        events = list(events_of(self.ask("/v1/responses", agent_body("codex"))))
        self.assertEqual(events[0][0], "response.created")
        self.assertEqual(events[-1][0], "response.completed")
        self.assertEqual([data["sequence_number"] for _, data in events], list(range(len(events))))
        response = events[-1][1]["response"]
        message, = response["output"]
        self.assertEqual(message["content"][0]["text"], "It is 21 degrees.")
        self.assertEqual(response["prompt_cache_key"], "0190-7")

    def test_codex_calls_a_tool(self):
        body = agent_body("codex")
        body["input"] = body["input"][:3]
        events = list(events_of(self.ask("/v1/responses", body)))
        reasoning, message, call = events[-1][1]["response"]["output"]
        self.assertEqual(reasoning["summary"][0]["text"], "I look it up.")
        self.assertEqual(message["content"][0]["text"], "Let me ask.")
        self.assertEqual((call["name"], json.loads(call["arguments"])),
                         ("get_weather", {"city": "Rome"}))

    def test_claude_code(self):
        body = agent_body("claude_code")
        body["messages"][2]["content"].pop()  # the words behind the results
        events = list(events_of(self.ask("/v1/messages?beta=true", body)))
        self.assertEqual((events[0][0], events[-1][0]), ("message_start", "message_stop"))
        text = "".join(data["delta"]["text"] for name, data in events
                       if name == "content_block_delta")
        self.assertEqual(text, "It is 21 degrees.")
        usage = events[0][1]["message"]["usage"]
        for name in ("max_tokens", "stream", "temperature", "metadata"):
            del body[name]
        count = json.loads(self.ask("/v1/messages/count_tokens?beta=true", body))
        self.assertEqual(count["input_tokens"],
                         usage["input_tokens"] + usage["cache_read_input_tokens"])

    def test_claude_code_calls_a_tool(self):
        events = list(events_of(self.ask("/v1/messages", agent_body("claude_code"))))
        kinds = [data["content_block"]["type"] for name, data in events
                 if name == "content_block_start"]
        self.assertEqual(kinds, ["thinking", "text", "tool_use"])
        self.assertEqual(events[-2][1]["delta"]["stop_reason"], "tool_use")


if __name__ == "__main__":
    served.run(sys.modules[__name__])
