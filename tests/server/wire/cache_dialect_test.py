"""What clients say about the cache, over sockets: the anthropic package's cache_control and usage,
sessions by a header, prompts that are normalised, keys and budgets, and the agents' benchmark."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

import anthropic

import served

SCRIPTED = os.path.join(served.SOURCE, "tests/data/models/scripted_calls.gguf")
LONG = "Lily and Tom went to the park and played with a big red ball. " * 12


def ask(client, system, **more):
    return client.messages.create(
        model="scripted_calls", max_tokens=4, system=system, extra_body={"temperature": 0},
        messages=[{"role": "user", "content": "How warm is it?"}], **more)


class Anthropic(unittest.TestCase):
    def client(self, server, key="none"):
        return anthropic.Anthropic(base_url=server.url, api_key=key, max_retries=0)

    def test_cache_control_is_granted_and_usage_adds_up(self):
        system = [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
        with served.Served(SCRIPTED) as server, self.client(server) as client:
            first = ask(client, system)
            kept = first.model_extra["cache_retention"]
            self.assertEqual([k["outcome"] for k in kept], ["granted"])
            self.assertEqual(first.usage.cache_creation.ephemeral_1h_input_tokens, kept[0]["tokens"])
            self.assertEqual(first.usage.cache_creation_input_tokens, kept[0]["tokens"])
            again = ask(client, system)
            self.assertEqual(again.usage.cache_creation_input_tokens, 0)
            self.assertEqual(again.usage.input_tokens, 1)
            self.assertEqual(again.content, first.content)
            prompt = sum((first.usage.input_tokens, first.usage.cache_read_input_tokens,
                          first.usage.cache_creation_input_tokens))
            self.assertEqual(again.usage.cache_read_input_tokens, prompt - 1)
            with client.messages.stream(
                    model="scripted_calls", max_tokens=4, system=system,
                    messages=[{"role": "user", "content": "How warm is it now?"}]) as stream:
                final = stream.get_final_message()
            self.assertGreater(final.usage.cache_read_input_tokens, prompt // 2)

    def test_with_keys_the_budget_is_the_operators(self):
        system = [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as keys:
            keys.write("tenant anna\nkey anna-key anna\n")
            keys.flush()
            os.chmod(keys.name, 0o600)
            secret = os.path.join(tempfile.mkdtemp(), "secret")
            flags = ["--api-keys", keys.name, "--secret-file", secret]
            with served.Served(SCRIPTED, *flags) as server, self.client(server, "anna-key") as client:
                kept = ask(client, system).model_extra["cache_retention"]
                self.assertEqual(kept[0]["outcome"], "refused")
                self.assertIn("--retain-budget", kept[0]["reason"])
            with served.Served(SCRIPTED, *flags, "--retain-budget", "0.1") as server, \
                    self.client(server, "anna-key") as client:
                kept = ask(client, system).model_extra["cache_retention"]
                self.assertEqual(kept[0]["outcome"], "granted")


def wait_for_sessions(server, count):
    """The gauge of open sessions follows the engine's steps."""
    for _ in range(100):
        lines = server.request("GET", "/metrics")[1].splitlines()
        open_now = [float(line.split()[-1]) for line in lines
                    if line.startswith("pagoda:kv_sessions")]
        if open_now == [count]:
            return
        time.sleep(0.05)
    raise AssertionError(f"{open_now} sessions are open, expected {count}")


class Sessions(unittest.TestCase):
    def test_a_header_names_a_session_and_closing_ends_it(self):
        body = {"messages": [{"role": "user", "content": "How warm is it?"}], "max_tokens": 2}
        with served.Served(SCRIPTED) as server:
            server.headers["X-Session-Id"] = "agent-1"
            self.assertEqual(server.post("/v1/chat/completions", body)[0], 200)
            server.headers.clear()
            wait_for_sessions(server, 1)
            status, reply = server.post("/cache/session/close", {"session": "agent-1"})
            self.assertEqual((status, reply["closed"]), (200, True))
            self.assertEqual(server.post("/cache/session/close", {"session": "agent-1"})[0], 404)
            wait_for_sessions(server, 0)


class Normalised(unittest.TestCase):
    def test_the_flag_puts_a_fixed_text_there_and_says_so(self):
        def body(stamp):
            return {"max_tokens": 2, "messages": [
                {"role": "system", "content": f"x-anthropic-billing-header: cch={stamp};\n{LONG}"},
                {"role": "user", "content": "How warm is it?"}]}
        with served.Served(SCRIPTED, "--normalise-prompts", "claude-code") as server:
            server.post("/v1/chat/completions", body("aa"))
            reply = server.post("/v1/chat/completions", body("bb"))[1]
            self.assertGreater(reply["prompt_normalised"]["tokens_saved"], 100)
        wrong = subprocess.run([served.BINARY, "serve", SCRIPTED, "--normalise-prompts", "uuid"],
                               capture_output=True, text=True, timeout=60)
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("--normalise-prompts", wrong.stderr)


# A server of another make. With --cache-ram, as the benchmark gives it, it fails third turns; with
# one slot it does not start.
OTHER_SERVER = """#!/usr/bin/env python3
import http.server, json, sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        known = {"/health": {"status": "ok"}, "/v1/models": {"data": [{"id": "other"}]}}
        found = self.path in known
        self.reply(200 if found else 404, json.dumps(known.get(self.path, {})).encode())

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        turn = sum(message["role"] == "user" for message in body["messages"])
        if "--cache-ram" in sys.argv and turn == 3:
            return self.reply(500, b'{"error": {"message": "the cache is full"}}')
        choice = {"index": 0, "delta": {"content": "one two three"}, "finish_reason": None}
        end = {"index": 0, "delta": {}, "finish_reason": "length"}
        usage = {"prompt_tokens": 100, "completion_tokens": 3, "total_tokens": 103}
        chunks = [{"choices": [choice]}, {"choices": [end]}, {"choices": [], "usage": usage}]
        text = "".join("data: %s\\n\\n" % json.dumps(chunk) for chunk in chunks)
        self.reply(200, (text + "data: [DONE]\\n\\n").encode(), "text/event-stream")

if "-np 1 " in " ".join(sys.argv):
    sys.exit(1)
port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


class Bench(unittest.TestCase):
    def test_agents_are_measured_with_sessions_and_without_and_beside_others(self):
        served.require_default_model(self)
        with tempfile.TemporaryDirectory() as folder:
            other = os.path.join(folder, "llama-server")
            with open(other, "w") as file:
                file.write(OTHER_SERVER)
            os.chmod(other, 0o700)
            done = subprocess.run(
                [served.BINARY, "bench", "agents", served.DEFAULT_MODEL, "--main-tokens", "160",
                 "--sub-tokens", "80", "--sub-agents", "2", "--turns", "6", "--result-tokens", "4",
                 "--note-tokens", "40", "--output-tokens", "3", "--pause", "0", "--kv-factor",
                 "4.5", "--llama-server", other, "--llama-flags", "--no-repack", "--json"],
                capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual([row["run"] for row in report["rows"]], [1, 2] * 6)
        rows = {row["server"]: row for row in report["rows"]}
        flags = {server["server"]: server["flags"] for server in report["servers"]}
        with_sessions, without = rows["pagoda, sessions"], rows["pagoda, no sessions"]
        for name in ("pagoda, sessions", "pagoda, no sessions"):
            self.assertGreater(rows[name]["blocks_evicted"], 0, "too small for all agents")
            self.assertIn("--kv-cache-memory-bytes", flags[name])
            self.assertIn("--kv-disk off", flags[name])
        self.assertGreater(with_sessions["blocks_evicted_by_sessions"], 0)
        self.assertEqual(without["blocks_evicted_by_sessions"], 0)
        self.assertEqual(rows["pagoda, its defaults"]["blocks_evicted"], 0)
        self.assertEqual(rows["pagoda, its defaults"]["prompt_tokens_computed_again"], 0)
        for server in report["servers"]:
            name = server["server"]
            if not name.startswith("llama-server, the same KV bytes"):
                self.assertEqual(rows[name]["turns_failed"], 0, server["first_failure"])
                self.assertEqual(len(server["turns"]), 3 * 6)
                self.assertGreater(rows[name]["ttft_p95_ms"], 0)
        # Third turns failed, so that the fourth to sixth were never asked.
        failed = rows["llama-server, the same KV bytes"]
        self.assertIn("--cache-ram 0", flags["llama-server, the same KV bytes"])
        self.assertIn("--no-repack", flags["llama-server, the same KV bytes"])
        self.assertEqual(failed["failure"], "the cache is full")
        self.assertEqual(failed["turns_failed"], 3 * 4)
        self.assertIsNone(failed["ttft_p95_ms"], "what failed is not left out")
        self.assertIsNone(failed["prompt_tokens_computed"], "it does not say what it had cached")
        # One that does not start is a row, too, and those behind it are measured.
        dead = rows["llama-server, the same KV bytes, one slot"]
        self.assertIn("ended at once", dead["failure"])
        self.assertEqual(dead["turns_failed"], 3 * 6)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
