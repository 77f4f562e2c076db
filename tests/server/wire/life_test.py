"""A server's life: loading, serving, draining, the end; and clients that go away."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import served

LONG = {"prompt": "Once upon a time", "max_tokens": 450, "ignore_eos": True, "temperature": 0}


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def post_raw(raw, body):
    data = json.dumps(body).encode()
    raw.sendall(
        b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        + f"Content-Length: {len(data)}\r\n\r\n".encode()
        + data
    )


class Life(unittest.TestCase):
    def test_a_client_that_leaves_cancels_its_request(self):
        # Slow enough to be still running: many answers at once.
        body = {**LONG, "n": 32, "temperature": 1.0}
        with served.Served(served.STORIES, "-t", "1") as server:
            def answer_tokens():
                return server.snapshot()["since_start"]["answer_tokens"]

            for streaming in (False, True):
                before = answer_tokens()
                raw = server.socket()
                post_raw(raw, {**body, "stream": streaming})
                served.wait_until(lambda: server.snapshot()["now"]["answers_running"] > 0)
                raw.close()
                served.wait_until(lambda: server.snapshot()["now"]["answers_running"] == 0)
                self.assertLess(answer_tokens() - before, 32 * 450, f"streaming {streaming}")

    def test_sigterm_lets_what_runs_end_and_takes_nothing_new(self):
        # On a busy machine the answer takes longer than the default time to shut down.
        with served.Served(served.STORIES, "-t", "1", "--shutdown-timeout", "240") as server:
            answers = []
            body = {**LONG, "n": 16, "temperature": 1.0, "seed": 1}
            asker = threading.Thread(
                target=lambda: answers.append(server.post("/v1/completions", body))
            )
            asker.start()
            served.wait_until(lambda: server.snapshot()["now"]["answers_running"] > 0)
            server.signal()
            served.wait_until(lambda: server.get("/ready")[0] == 503)
            self.assertEqual(server.get("/health")[0], 200)
            status, refusal = server.post("/v1/completions", LONG)
            self.assertEqual(status, 503)
            self.assertEqual(refusal["error"]["code"], "draining")
            asker.join()
            status, reply = answers[0]
            self.assertEqual(status, 200)
            self.assertEqual(reply["usage"]["completion_tokens"], 16 * 450)
            self.assertEqual(server.wait(), 0)

    def test_what_takes_too_long_is_told_so(self):
        with served.Served(served.STORIES, "-t", "1", "--shutdown-timeout", "0.1") as server:
            raw = server.socket()
            post_raw(raw, {**LONG, "n": 64, "temperature": 1.0, "stream": True})
            self.assertIn(b"200 OK", raw.recv(4096))
            server.signal()
            text = b""
            while piece := raw.recv(65536):
                text += piece
            self.assertIn(b'"code":"draining"', text)
            self.assertIn(b"data: [DONE]", text)
            self.assertEqual(server.wait(), 0)

    def test_a_body_that_is_being_read_is_read_no_further(self):
        # A million parts take seconds to read, on one of the threads of --threads-text.
        part = b'{"type":"text","text":"x"}'
        body = b'{"max_tokens":1,"messages":[],"system":[' + b",".join([part] * 1_000_000) + b"]}"
        with served.Served(served.STORIES, "-t", "1", "--shutdown-timeout", "0.1") as server:
            with server.socket(60) as raw:
                raw.sendall(
                    b"POST /v1/messages/count_tokens HTTP/1.1\r\nHost: localhost\r\n"
                    b"Content-Type: application/json\r\n"
                    + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
                )
                before = cpu_seconds(server.process.pid)
                served.wait_until(lambda: cpu_seconds(server.process.pid) > before + 0.2)
                server.signal()
                text = b""
                while piece := raw.recv(65536):
                    text += piece
            self.assertIn(b" 503 ", text.split(b"\r\n")[0])
            self.assertIn(b"the server is stopping", text)
            self.assertEqual(server.wait(), 0)

    def test_a_second_signal_ends_it_at_once(self):
        with served.Served(served.STORIES, "-t", "1") as server:
            raw = server.socket()
            post_raw(raw, {**LONG, "n": 64, "temperature": 1.0})
            served.wait_until(lambda: server.snapshot()["now"]["answers_running"] > 0)
            server.signal()
            served.wait_until(lambda: server.get("/ready")[0] == 503)
            server.signal(signal.SIGINT)
            self.assertEqual(server.wait(5), 128 + signal.SIGINT)
            raw.close()

    def test_the_greeting_names_what_the_context_chose(self):
        model = os.path.join(served.SOURCE, "tests", "data", "models", "arch_phi3_longrope.gguf")
        choices = {32: "short factors, for up to 32", 64: "long factors, for more than 32"}
        for context, choice in choices.items():
            with served.Served(model, "-t", "1", "--max-model-len", str(context)) as server:
                self.assertIn(
                    f"context {context} tokens (longrope's {choice} tokens), ", server.greeting
                )
        with served.Served(served.STORIES, "-t", "1") as server:
            self.assertIn("context 512 tokens, KV cache ", server.greeting)
            plan = (r"memory: weights [\d.]+ \w+ in the file, workspace [\d.]+ \w+, KV cache [\d.]+ \w+: "
                    r"[\d,]+ requests? of 512 tokens at once")
            self.assertRegex(server.greeting, plan)
            sizes = server.get("/server_info")[1]["kv_block_bytes_by_dtype"]
            self.assertLess(sizes["int8"], sizes.get("bf16", 1 << 40))

    def test_plan_and_greeting_count_the_same_requests(self):
        def planned(*words):
            told = subprocess.run([served.BINARY, "plan", *words, "--json"], capture_output=True, text=True, check=True)
            return json.loads(told.stdout)

        # Models whose layers keep all tokens, some of them a window, and latents.
        for name in ("arch_olmo2", "arch_gemma3", "arch_gpt_oss", "arch_deepseek2"):
            model = os.path.join(served.SOURCE, "tests", "data", "models", f"{name}.gguf")
            asked = (model, "--context", "2048", "--kv", "bf16")
            weights = planned(*asked, "--memory", "20MB")["weights_bytes"]
            plan = planned(*asked, "--memory", f"{weights + 20 * 2**20}B")
            self.assertEqual(plan["kv_bytes"], 20 * 2**20)
            requests = [cell["requests"] for cell in plan["requests_at_once"]
                        if cell["dtype"] == "bf16" and cell["tokens"] == 2048]
            with served.Served(model, "-t", "1", "--max-model-len", "2048", "--kv-cache-dtype", "bf16",
                               memory="20MiB") as server:
                told = re.search(r"([\d,]+) requests? of 2,048 tokens at once", server.greeting)
                self.assertEqual([int(told[1].replace(",", ""))], requests, name)

    def test_a_model_file_that_is_truncated_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "model.gguf")
            shutil.copy(served.STORIES, model)
            # Kernels that multiply by weights where they are mapped.
            with mock.patch.dict(os.environ, PAGODA_KERNELS="ref"):
                server = served.Served(model, "-t", "1")
            with server:
                os.truncate(model, 4096)
                with server.socket() as raw:
                    post_raw(raw, LONG)
                    self.assertEqual(server.wait(), 1)
                self.assertIn(f"error: {model}: the model's file was truncated", server.stderr())

    def test_idle_costs_no_processor_time(self):
        with served.Served() as server:
            server.post("/v1/completions", {"prompt": "Once", "max_tokens": 4})
            idle = server.socket()
            time.sleep(0.5)
            before = cpu_seconds(server.process.pid)
            time.sleep(2)
            self.assertLess(cpu_seconds(server.process.pid) - before, 0.03)
            idle.close()

    def test_a_silent_stream_gets_comments(self):
        with served.Served(served.STORIES, "-t", "1", "--sse-keep-alive", "0.05",
                           "--max-num-seqs", "1") as server:
            busy = server.socket()
            post_raw(busy, {**LONG, "stream": False})
            served.wait_until(lambda: server.snapshot()["now"]["answers_running"] > 0)
            many = [server.socket() for _ in range(4)]
            for one in many:
                post_raw(one, {**LONG, "stream": False})
            reply, text = server.request(
                "POST", "/v1/completions", {**LONG, "max_tokens": 2, "stream": True}
            )
            self.assertEqual(reply.status, 200)
            self.assertIn(": keep-alive\n\n", text)
            self.assertEqual(len(served.stream_events(text)), 2)
            for one in (busy, *many):
                one.close()

    def test_a_context_beyond_the_models_is_a_warning(self):
        for context, is_told in (("512", False), ("600", True)):
            with served.Served(served.STORIES, "-c", context) as server:
                told = f"--max-model-len {context} is beyond the 512 tokens" in server.stderr()
                self.assertEqual(told, is_told)

    def test_a_taken_port_is_an_error(self):
        with served.Served() as server:
            second = served.Served(wait=False, port=server.port)
            self.assertEqual(second.wait(), 1)
            self.assertIn(f"cannot listen on 127.0.0.1:{server.port}", second.stderr())
            self.assertIn("--port takes another one", second.stderr())
            second.stop()

    def test_a_missing_model_is_an_error(self):
        second = served.Served("/nowhere/model.gguf", wait=False)
        self.assertEqual(second.wait(), 1)
        self.assertIn("/nowhere/model.gguf", second.stderr())
        second.stop()

    def test_the_default_model_is_ready_within_a_second(self):
        served.require_default_model(self)
        seconds = []
        for _ in range(3):  # the first start may read the file from the disk
            with served.Served(served.DEFAULT_MODEL) as server:
                self.assertEqual(server.get("/health")[0], 200)
                seconds.append(server.ready_s - server.seconds_without_a_core())
        print(f"ready after {min(seconds):.2f} s with a core to itself", file=sys.stderr)
        self.assertLess(min(seconds), 1.0)

    def test_pagoda_chat_talks_to_it(self):
        served.require_default_model(self)
        with served.Served(served.DEFAULT_MODEL, "-c", "512") as server:
            question = "Name a river in Europe."
            chat = [served.BINARY, "chat", "--url", server.url, "-p", question, "--temp", "0",
                    "-n", "8"]
            done = subprocess.run(chat, capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            reply = server.post(
                "/v1/chat/completions",
                {"messages": [{"role": "user", "content": question}], "temperature": 0,
                 "max_tokens": 8},
            )[1]
            self.assertEqual(done.stdout.strip(), reply["choices"][0]["message"]["content"].strip())

    def test_pagoda_chat_asks_for_the_model_it_was_told(self):
        with served.ChatServed() as server:
            chat = [served.BINARY, "chat", "--url", f"localhost:{server.port}", "-p", "Hi", "-n", "1"]
            named = subprocess.run([*chat, "--model", "no-such-model"], capture_output=True, text=True, timeout=60)
            self.assertEqual(named.returncode, 1)
            self.assertIn("no-such-model", named.stderr)
            # A variable says where models lie on this machine, not which one a server has.
            environment = {**os.environ, "PAGODA_MODEL": "/nowhere/model.gguf"}
            done = subprocess.run(chat, capture_output=True, text=True, timeout=60, env=environment)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_address_of_all_is_tried_by_one_that_can_be_reached(self):
        server = served.Served(served.STORIES, "--host", "0.0.0.0", wait=False)
        greeting = ""
        while "try: curl" not in greeting:
            line = server.process.stdout.readline().decode()
            self.assertTrue(line, server.stderr())
            greeting += line
        server.process.kill()
        server.stop()
        port = re.search(r"on http://0\.0\.0\.0:(\d+), which is every address of this machine\n", greeting).group(1)
        self.assertIn(f"try: curl http://127.0.0.1:{port}/v1/", greeting)

    def test_steps_are_those_of_the_device_and_the_flags(self):
        names = ("max_num_seqs", "max_num_batched_tokens", "shared_step_tokens", "itl_target_ms", "http_threads")
        cases = (
            ((), (64, 512, 32, 0, 2), "steps: at most 512 tokens of 64 sequences, no ITL target; 2 connection threads\n"),
            (("--max-num-seqs", "600"), (600, 1200, 32, 0, 2), "steps: at most 1,200 tokens of 600 sequences, no "),
            (("--max-num-batched-tokens", "48", "--itl-target", "2.5", "--shared-step-tokens", "7", "--threads-http", "3"),
             (24, 48, 7, 2.5, 3), "steps: at most 48 tokens of 24 sequences, ITL target 2.5 ms; 3 connection threads\n"))
        for flags, facts, line in cases:
            with self.subTest(flags), served.Served(served.STORIES, *flags) as server:
                info = server.snapshot()
                self.assertEqual(tuple(info[name] for name in names), facts)
                self.assertIn(line, server.greeting)

    def test_the_greeting_names_the_kernel_set(self):
        listed = subprocess.check_output([served.BINARY, "inspect", "--kernels"], text=True)
        chosen = re.search(r"^(\S+) .* chosen$", listed, re.M).group(1)
        with served.Served() as server:
            self.assertRegex(server.greeting, rf"threads?, kernels {chosen}\n")

    def test_pagoda_inspect_shows_what_is_retained(self):
        with served.Served(served.STORIES, "--retain-budget", "0.5") as server:
            prompt = "Once upon a time there was a girl who loved to play outside in the park"
            reply = server.post(
                "/v1/completions",
                {"prompt": prompt, "max_tokens": 1, "retain": {"seconds": 600, "priority": 7}},
            )[1]
            self.assertTrue(reply["retain"]["granted"], reply)
            inspect = [served.BINARY, "inspect", server.url]
            seen = json.loads(subprocess.check_output([*inspect, "--json"], timeout=30))
            self.assertEqual(seen["retained"]["blocks_retained"], reply["retain"]["blocks"])
            self.assertEqual(seen["retained"]["grants"][0]["priority"], 7)
            text = subprocess.check_output(inspect, text=True, timeout=30)
            self.assertRegex(text, r"public +1 +7 +(600|59\d)\.\d")

    def test_pagoda_explain_says_why_a_prompt_would_miss(self):
        def body(name):
            return json.dumps({"prompt": f"Once upon a time there was a girl named {name}."})

        with served.Served() as server:
            server.post("/v1/completions", {**json.loads(body("Lily")), "max_tokens": 1})
            explain = [served.BINARY, "explain", server.url]
            text = subprocess.check_output(explain, input=body("Mia"), text=True, timeout=30)
            self.assertRegex(text, r"cached +\d+ of \d+ prompt tokens")
            self.assertRegex(text, r"reason +differs")
            self.assertRegex(text, r'where the cache has "')
            self.assertIn("the prompt changes at character 40", text)
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                file.write(body("Lily"))
                file.flush()
                told = subprocess.check_output(
                    [*explain, "--file", file.name, "--json"], timeout=30)
            self.assertEqual(json.loads(told)["reason"], "none")
            asked = subprocess.run([*explain, "-p", "Hi"], capture_output=True, text=True)
            self.assertIn("gave 400: messages", asked.stderr)  # this model has no chat template
            wrong = subprocess.run(explain, input='{"prompt": 7}', capture_output=True, text=True)
            self.assertEqual(wrong.returncode, 1)
            self.assertIn("gave 400: prompt", wrong.stderr)

    def test_the_program_is_small(self):
        self.assertLess(os.path.getsize(served.BINARY), 50_000_000)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
