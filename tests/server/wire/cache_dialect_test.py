"""What clients say about the cache, over sockets: the anthropic package's cache_control and usage,
sessions by a header, prompts that are normalised, keys and budgets, and the agents' benchmark."""

import json
import os
import subprocess
import sys
import tempfile
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


class Sessions(unittest.TestCase):
    def test_a_header_names_a_session_and_closing_ends_it(self):
        body = {"messages": [{"role": "user", "content": "How warm is it?"}], "max_tokens": 2}
        with served.Served(SCRIPTED) as server:
            server.headers["X-Session-Id"] = "agent-1"
            self.assertEqual(server.post("/v1/chat/completions", body)[0], 200)
            server.headers.clear()
            self.assertIn("pagoda:kv_sessions", server.request("GET", "/metrics")[1])
            status, reply = server.post("/cache/session/close", {"session": "agent-1"})
            self.assertEqual((status, reply["closed"]), (200, True))
            self.assertEqual(server.post("/cache/session/close", {"session": "agent-1"})[0], 404)


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


class Bench(unittest.TestCase):
    def test_agents_are_measured_with_sessions_and_without(self):
        served.require_default_model(self)
        done = subprocess.run(
            [served.BINARY, "bench", "agents", served.DEFAULT_MODEL, "--main-tokens", "100",
             "--sub-tokens", "40", "--sub-agents", "2", "--turns", "4", "--result-tokens", "4",
             "--note-tokens", "6", "--output-tokens", "3", "--pause", "0", "--kv-factor", "3",
             "--json"],
            capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(len(report["rows"]), 2)
        for row, server in zip(report["rows"], report["servers"]):
            self.assertEqual(row["errors"], 0, server["first_failure"])
            self.assertEqual(len(server["turns"]), 3 * 4)
            self.assertIn("--kv-cache-memory-bytes", server["flags"])


if __name__ == "__main__":
    served.run(sys.modules[__name__])
