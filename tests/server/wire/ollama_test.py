"""The ollama package against the server: chats, streams, tools, models, errors."""

import json
import os
import sys
import tempfile
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

    def post(self, headers, path="/api/generate"):
        body = json.dumps({"prompt": "Hi", "stream": False, "options": OPTIONS, "messages": [USER]}).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        told = self.server.raw(f"{head}{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        status = int(told.split(b" ")[1])
        return status, told.split(b"\r\n\r\n", 1)[1].decode()

    def test_a_body_may_come_as_ollamas_clients_send_it(self):
        """Ollama looks at no Content-Type: curl -d says a form, and many clients say nothing."""
        form = "Content-Type: application/x-www-form-urlencoded\r\n"
        for headers in (form, "", "Content-Type: text/plain;charset=UTF-8\r\n"):
            for path in ("/api/generate", "/api/chat"):
                self.assertEqual(self.post(headers, path)[0], 200, headers)
            status, reply = self.post(headers, "/v1/chat/completions")
            self.assertEqual(status, 415, headers)
            self.assertIn("add -H 'Content-Type: application/json'", json.loads(reply)["error"]["message"])

    def test_a_page_of_another_site_cannot_send_a_form(self):
        """A browser sends such a body without asking first, and says where the page is from."""
        for kind in ("Content-Type: text/plain\r\n", "Content-Type: application/x-www-form-urlencoded\r\n", ""):
            for page in ("Origin: https://evil.example\r\n", "Origin: null\r\n", "Sec-Fetch-Site: cross-site\r\n",
                         "Sec-Fetch-Site: same-site\r\n"):
                for path in ("/api/generate", "/api/chat"):
                    self.assertEqual(self.post(kind + page, path)[0], 403, kind + page)
            # A page of the server itself may ask; its forms are not JSON.
            self.assertEqual(self.post(kind + "Origin: http://localhost\r\n")[0], 415)
        json_type = "Content-Type: application/json\r\n"
        self.assertEqual(self.post(json_type + "Sec-Fetch-Site: same-origin\r\n")[0], 200)
        self.assertEqual(self.post(json_type + "Sec-Fetch-Site: cross-site\r\n")[0], 403)
        page = self.server.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                               b"Sec-Fetch-Site: cross-site\r\n\r\n")
        self.assertIn(b" 200 ", page.split(b"\r\n")[0], "a link leads to the page")

    def test_a_listed_page_sends_json(self):
        """--cors-origin lets a page ask, after a preflight request for JSON."""
        with served.Served(SCRIPTED, "--cors-origin", "*") as server:
            body = b'{"prompt": "Hi", "stream": false}'
            head = b"POST /api/generate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nOrigin: https://a.example\r\n"
            for kind, status in ((b"text/plain", b" 415 "), (b"application/json", b" 200 ")):
                told = server.raw(head + b"Content-Type: " + kind + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                self.assertIn(status, told.split(b"\r\n")[0])

    def test_an_unknown_option_is_named_in_the_log(self):
        with served.Served(served.STORIES, "--chat-template", self.template(), "--log-format", "json") as server:
            client = ollama.Client(host=server.url)
            client.generate(model="stories260K", prompt="Hi", options={
                "num_predict": 2, "num_ctx": 512, "repeat_penalty": 1.2, "repeat_last_n": 64, "foo": 1,
                "repetition_penalty": 1.1})
            served.wait_until(server.stderr)
            line = json.loads(server.stderr().splitlines()[0])
            self.assertEqual(sorted(line["ignored_fields"].split(",")),
                             ["options.foo", "options.repeat_last_n", "options.repetition_penalty"])

    def template(self):
        file = tempfile.NamedTemporaryFile("w", suffix=".jinja")
        self.addCleanup(file.close)
        file.write("{% for m in messages %}{{ m.content }}{% endfor %}")
        file.flush()
        return file.name

    def test_models(self):
        listed, = self.client.list().models
        self.assertEqual(listed.model, "scripted_calls:latest")
        self.assertRegex(listed.digest, "^[0-9a-f]{64}$")
        self.assertGreater(listed.size, 10_000)
        self.assertLessEqual(listed.size, os.path.getsize(SCRIPTED))
        self.assertEqual((listed.details.format, listed.details.family), ("gguf", "llama"))
        self.assertRegex(listed.details.parameter_size, r"^[0-9.]+[KMB]$")
        self.assertEqual(listed.details.quantization_level, "F16")
        info = self.client.show("scripted_calls").modelinfo
        self.assertEqual(info["general.architecture"], "llama")
        self.assertGreater(info["llama.context_length"], 0)
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
