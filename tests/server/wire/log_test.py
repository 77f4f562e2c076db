"""One line per request on stderr, and no word of a prompt in it unless asked for."""

import json
import re
import sys
import tempfile
import time
import unittest

import served

BODY = {"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0}


def lines(server, count):
    """The log's lines once there are so many; a line is written after its reply."""
    served.wait_until(lambda: len(server.stderr().splitlines()) >= count)
    time.sleep(0.05)
    return server.stderr().splitlines()


class Log(unittest.TestCase):
    def test_a_json_line_says_what_the_reply_said(self):
        with served.Served(served.STORIES, "--log-format", "json") as server:
            reply = server.post("/v1/completions", BODY)[1]
            warm = server.post("/v1/completions", BODY)[1]
            server.get("/health")
            first, second = (json.loads(line) for line in lines(server, 2))
            self.assertEqual(first["id"], reply["id"])
            self.assertRegex(first["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            self.assertEqual(first["path"], "/v1/completions")
            self.assertEqual(first["tenant"], "default")
            self.assertEqual(first["model"], "stories260K")
            self.assertEqual(first["status"], 200)
            self.assertEqual(first["finish_reason"], "length")
            self.assertEqual(first["prompt_tokens"], reply["usage"]["prompt_tokens"])
            self.assertEqual(first["completion_tokens"], 8)
            self.assertEqual(first["cached_tokens"], 0)
            self.assertEqual(second["id"], warm["id"])
            self.assertEqual(second["cached_tokens"], reply["usage"]["prompt_tokens"] - 1)
            self.assertGreater(first["ttft_s"], 0)
            self.assertGreaterEqual(first["e2e_s"], first["ttft_s"])

    def test_fields_that_are_ignored_are_named_to_the_client_too(self):
        odd = {"n_predict": 4, "max_token": 4, "bad\r\nname": 1, "seed": 1}
        chat = {"messages": [{"role": "user", "content": "A dog"}], "max_tokens": 2, "xyz": True,
                "documents": [{"text": "Dogs bark."}]}
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
            template.write(served.STORY_TEMPLATE)
            template.flush()
            with served.Served(served.STORIES, "--chat-template", template.name) as server:
                for path, body, ignored in (
                    ("/v1/completions", {**BODY, **odd}, "n_predict,max_token"),
                    ("/v1/completions", BODY, None),
                    ("/v1/chat/completions", chat, "xyz,documents"),
                    ("/v1/messages", {**chat, "documents": None}, "xyz"),
                ):
                    for stream in (False, True):
                        reply, _ = server.request("POST", path, {**body, "stream": stream})
                        self.assertEqual((reply.status, reply.getheader("X-Ignored-Fields")), (200, ignored), path)
                lines(server, 8)
                self.assertIn("ignored_fields=n_predict,max_token", server.stderr())

    def test_embeddings_are_no_completions(self):
        with served.Served(served.STORIES, "--log-format", "json", "--device", "cpu") as server:
            self.assertEqual(server.post("/v1/embeddings", {"input": "A little dog"})[0], 200)
            line = json.loads(lines(server, 1)[0])
            self.assertEqual((line["path"], line["status"]), ("/v1/embeddings", 200))
            self.assertRegex(line["id"], r"^embd-[0-9a-f]{16}$")
            self.assertNotIn("finish_reason", line)

    def test_refusals_and_clients_that_leave_have_their_line(self):
        with served.Served(served.STORIES, "--log-format", "json") as server:
            secret = "a secret word"
            server.post("/v1/completions", {"prompt": secret, "temperature": secret})
            server.request("POST", "/v1/completions", '{"prompt": "' + secret,
                           {"Content-Type": "application/json"})
            server.post("/v1/completions", {"prompt": secret, "model": secret})
            with server.socket() as raw:
                body = json.dumps({**BODY, "max_tokens": 400, "ignore_eos": True, "stream": True}).encode()
                raw.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                            b"Content-Type: application/json\r\n"
                            + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
                raw.recv(1000)
            all_lines = lines(server, 4)
            self.assertNotIn("secret", "".join(all_lines))
            field, text, model, gone = (json.loads(line) for line in all_lines)
            self.assertEqual((field["status"], field["error"]), (400, "temperature"))
            self.assertEqual((text["status"], text["error"]), (400, "invalid_json"))
            self.assertEqual((model["status"], model["error"]), (404, "model_not_found"))
            self.assertEqual((gone["status"], gone["finish_reason"]), (499, "cancelled"))
            self.assertTrue(gone["stream"])

    def test_what_the_engine_refuses_names_the_field(self):
        with served.Served(served.STORIES, "--log-format", "json") as server:
            reply = server.post("/v1/completions", {**BODY, "kv_policy": "window:100000"})[1]
            self.assertIn("kv_policy: ", reply["error"]["message"])
            line = json.loads(lines(server, 1)[0])
            self.assertEqual((line["status"], line["finish_reason"], line["error"]), (400, "error", "kv_policy"))

    def test_text_is_the_default_and_has_no_prompt(self):
        with served.Served(served.STORIES) as server:
            server.post("/v1/completions", BODY)
            (line,) = lines(server, 1)
            self.assertRegex(line, r"^\S+Z id=cmpl-\S+ path=/v1/completions tenant=default .*ttft_s=")
            self.assertIsNone(re.search("Once|upon", line))

    def test_prompts_are_there_when_asked_for(self):
        with served.Served(served.STORIES, "--log-format", "json", "--log-prompts") as server:
            server.post("/v1/completions", {**BODY, "prompt": ["Once upon", "The dog"]})
            (line,) = lines(server, 1)
            first, second = json.loads(line)["prompts"]
            self.assertIn("Once upon", first)
            self.assertIn("The dog", second)

    def test_none_is_silence(self):
        with served.Served(served.STORIES, "--log-format", "none", "--log-prompts") as server:
            server.post("/v1/completions", BODY)
            server.post("/v1/completions", {"prompt": 3.5})
            time.sleep(0.2)
            self.assertEqual(server.stderr(), "")


if __name__ == "__main__":
    served.run(sys.modules[__name__])
