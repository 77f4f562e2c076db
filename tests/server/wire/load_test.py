"""`pagoda bench serve` against the program itself and against servers that misbehave: every request
is counted once, under what became of it, and answers do not depend on the crowd."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import served


def bench(url, *flags, status=0):
    """The report of one run."""
    done = subprocess.run([served.BINARY, "bench", "serve", "--url", url, "--json", *map(str, flags)],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == status, (done.returncode, done.stderr, done.stdout)
    return json.loads(done.stdout) if done.stdout else done.stderr


def row(report, name):
    return next(r for r in report["rows"] if r["time"] == name)


class AgainstPagoda(unittest.TestCase):
    def test_every_token_is_counted_and_a_seed_repeats_the_prompts(self):
        with served.Served() as server:
            flags = ["-n", 20, "--concurrency", 4, "--input-tokens", "33", "--output-tokens", "12"]
            cold = bench(server.url, *flags)
            self.assertEqual((cold["answered"], cold["errors"]), (20, 0))
            self.assertEqual(cold["settings"]["prompts"], "token ids")
            self.assertEqual(cold["prompt_tokens"], 20 * 33)
            self.assertEqual(cold["output_tokens"], 20 * 12)
            self.assertLessEqual(cold["in_flight_peak"], 4)
            self.assertLessEqual(cold["connections"], 4, "connections are used again")
            self.assertEqual(row(cold, "first token, from when due")["count"], 20)
            self.assertLessEqual(row(cold, "gap between tokens")["count"], 20 * 11)
            warm = bench(server.url, *flags)
            self.assertEqual(warm["cached_tokens"], 20 * 32, "all but the last token of each")
            other = bench(server.url, *flags, "--seed", 1)
            self.assertLess(other["cached_tokens"], 20 * 8)

    def test_prefixes_are_found_in_the_cache(self):
        with served.Served() as server:
            report = bench(server.url, "--workload", "prefix", "--prefixes", 2, "--prefix-tokens", 64,
                           "-n", 30, "--concurrency", 1, "--input-tokens", 8, "--output-tokens", 2)
            self.assertEqual(report["prompt_tokens"], 30 * 72)
            self.assertGreaterEqual(report["cached_tokens"], 28 * 64)

    def test_conversations_grow_by_their_answers(self):
        with served.ChatServed() as server:
            report = bench(server.url, "--chat", "--workload", "conversation", "-n", 3, "--turns", 3,
                           "--think", 0.01, "--input-tokens", 4, "--output-tokens", 6)
            self.assertEqual((report["answered"], report["errors"]), (9, 0))
            self.assertGreater(report["cached_share"], 0.3)

    def test_a_trace_is_sent_at_its_speed(self):
        with served.Served() as server, tempfile.NamedTemporaryFile("w", suffix=".jsonl") as trace:
            for i in range(8):
                line = {"timestamp": i * 1000, "input_length": 48, "output_length": 3,
                        "hash_ids": [7, 8, 100 + i]}
                trace.write(json.dumps(line) + "\n")
            trace.flush()
            report = bench(server.url, "--workload", "trace", "--trace", trace.name, "--speed", 10,
                           "--block-tokens", 16)
            self.assertEqual((report["answered"], report["errors"]), (8, 0))
            self.assertEqual(report["prompt_tokens"], 8 * 48)
            self.assertGreaterEqual(report["seconds"], 0.7)
            self.assertGreaterEqual(report["cached_tokens"], 7 * 32)

    def test_hundreds_of_streams_at_once_get_the_answer_of_one_alone(self):
        with served.Served(served.STORIES, "--max-num-seqs", "256", "--max-num-batched-tokens",
                           "1024") as server:
            # Long enough that none has ended while others are still on their way to the server.
            flags = ["--workload", "fixed", "--prompt", "Once upon a time", "--output-tokens", 120]
            report = bench(server.url, *flags, "-n", 300)
            self.assertEqual((report["answered"], report["errors"]), (300, 0))
            self.assertEqual(report["in_flight_peak"], 300)
            self.assertEqual(report["answers_different"], 1)
            self.assertEqual(report["output_tokens"], 300 * 120)
            self.assertGreater(report["stream_fairness"], 0.5)

    def test_a_picture_shows_latencies_over_time(self):
        with served.Served() as server, tempfile.NamedTemporaryFile("r", suffix=".svg") as picture:
            bench(server.url, "-n", 20, "--rate", 40, "--output-tokens", 4, "--plot", picture.name)
            svg = picture.read()
            for text in ("TTFT of requests by when they were sent", "Mean ITL", "p50", "p95"):
                self.assertIn(f">{text}", svg)
            self.assertGreater(svg.count("<circle "), 4)
            self.assertIn("--plot: cannot write", bench(server.url, "-n", 1, "--plot", "/no/such.svg", status=1))

    def test_keys_are_sent(self):
        with served.Served(served.STORIES, "--api-key", "sesame") as server:
            self.assertIn("401", bench(server.url, "-n", 1, status=1))
            report = bench(server.url, "-n", 3, "--output-tokens", 2, "--api-key", "sesame")
            self.assertEqual(report["answered"], 3)

    def test_https_is_spoken_and_certificates_are_looked_at(self):
        with tempfile.TemporaryDirectory() as folder:
            cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                            "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert,
                            "-days", "2", "-subj", "/CN=localhost", "-addext",
                            "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
            with served.Served(served.STORIES, "--ssl-certfile", cert, "--ssl-keyfile", key) as server:
                url = f"https://127.0.0.1:{server.port}"
                flags = ["-n", 20, "--concurrency", 5, "--output-tokens", 10]
                report = bench(url, *flags, "--insecure")
                self.assertEqual((report["answered"], report["errors"]), (20, 0))
                self.assertEqual(report["output_tokens"], 200)
                self.assertIn("certificate", bench(url, *flags, status=1))
                os.environ["SSL_CERT_FILE"] = cert
                try:
                    self.assertEqual(bench(url, *flags)["answered"], 20)
                finally:
                    del os.environ["SSL_CERT_FILE"]

    def test_an_open_loop_keeps_its_times(self):
        with served.Served() as server:
            report = bench(server.url, "--rate", 50, "--arrivals", "constant", "-n", 30,
                           "--output-tokens", 1, "--slo-ttft", 60000)
            self.assertGreaterEqual(report["seconds"], 29 / 50)
            self.assertEqual(report["goodput_share"], 1)
            limited = bench(server.url, "--rate", 50, "-n", 1000, "--duration", 0.5,
                            "--output-tokens", 1, "--slo-ttft", 0.0001)
            self.assertLess(limited["requests"], 60)
            self.assertEqual(limited["goodput_share"], 0)

    def test_a_name_of_two_addresses_is_found_where_it_is_served(self):
        with served.Served() as server:
            report = bench(f"http://localhost:{server.port}/v1", "-n", 2, "--output-tokens", 2)
            self.assertEqual((report["answered"], report["errors"]), (2, 0))

    def test_what_makes_no_sense_is_said(self):
        url = "http://127.0.0.1:1"
        self.assertIn("--input-tokens", bench(url, "--input-tokens", "x", status=2))
        self.assertIn("--prompt", bench(url, "--workload", "fixed", status=2))
        self.assertIn("--trace", bench(url, "--workload", "trace", status=2))
        self.assertIn("127.0.0.1:1", bench(url, status=1))


GOOD = (b'data: {"choices":[{"index":0,"text":"a","finish_reason":null}]}\n\n'
        b'data: {"choices":[{"index":0,"text":"b","finish_reason":"length"}]}\n\n'
        b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n'
        b"data: [DONE]\n\n")


def framed(body):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


class Fake:
    """Answers request number i, from 0, with `script(i)`: bytes, and whether to close after."""

    def __init__(self, script):
        self.script = script
        self.count = 0
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.open = []
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self.listener.accept()
                self.open.append(peer)
                threading.Thread(target=self.talk, args=(peer,), daemon=True).start()

    def talk(self, peer):
        with contextlib.suppress(OSError), peer:
            waiting = b""
            while True:
                while b"\r\n\r\n" not in waiting:
                    piece = peer.recv(65536)
                    if not piece:
                        return
                    waiting += piece
                head, waiting = waiting.split(b"\r\n\r\n", 1)
                length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n")
                              if line.lower().startswith(b"content-length"))
                while len(waiting) < length:
                    waiting += peer.recv(65536)
                waiting = waiting[length:]
                with self.lock:
                    number, self.count = self.count, self.count + 1
                answer, closes = self.script(number)
                peer.sendall(answer)
                if closes:
                    return

    def close(self):
        self.listener.close()
        for peer in self.open:
            peer.close()


@contextlib.contextmanager
def fake(script):
    server = Fake(script)
    try:
        yield server
    finally:
        server.close()


FLAGS = ["--served-model", "m", "--prompts", "words", "--output-tokens", 2]


class AgainstOthers(unittest.TestCase):
    def test_each_way_to_fail_is_counted_as_what_it_is(self):
        refusal = b'{"error":{"message":"busy"}}'
        ways = [
            (framed(GOOD), False),
            (b"HTTP/1.1 503 Busy\r\nContent-Length: %d\r\n\r\n%s" % (len(refusal), refusal), False),
            (b"HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", False),
            (b"", True),
            (framed(GOOD)[:-30], True),
            (framed(GOOD.replace(b"data: [DONE]\n\n", b"")), False),
            (framed(GOOD.replace(b'"completion_tokens":2', b'"completion_tokens":1')), False),
            (framed(b"data: {nonsense\n\n" + GOOD), False),
            (b"hello\r\n\r\n", True),
            (framed(b'data: {"error":{"message":"lost it"}}\n\ndata: [DONE]\n\n'), False),
            (framed(GOOD)[:200], None),  # and then nothing
        ]

        def script(number):
            answer, closes = ways[number % len(ways)]
            if closes is None:
                time.sleep(30)
            return answer, closes

        with fake(script) as server:
            # A connection each: what one does cannot be taken for another's.
            report = bench(server.url, *FLAGS, "-n", 22, "--timeout", 1.5)
        self.assertEqual(report["answered"], 2)
        self.assertEqual(report["errors"], 20)
        self.assertEqual(report["errors_by_kind"],
                         {"connection": 2, "error in the stream": 2, "malformed": 4, "short": 6,
                          "timed out": 2, "http status": {"429": 2, "503": 2}})
        self.assertEqual(report["output_tokens"], 4)

    def test_a_refused_connection_is_an_error_of_the_connection(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        report = bench(f"http://127.0.0.1:{port}", *FLAGS, "-n", 5, status=1)
        self.assertEqual(report["errors_by_kind"]["connection"], 5)
        self.assertIn("refused", report["first_error"])

    def test_a_server_may_close_a_connection_after_any_answer(self):
        with fake(lambda number: (framed(GOOD), True)) as server:
            report = bench(server.url, *FLAGS, "-n", 50, "--concurrency", 3)
        self.assertEqual((report["answered"], report["errors"]), (50, 0))

    def test_a_whole_reply_of_any_framing_is_an_answer(self):
        body = (b'{"choices":[{"text":"ab","finish_reason":"length"}],'
                b'"usage":{"prompt_tokens":3,"completion_tokens":2}}')
        framings = [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body),
                    b"HTTP/1.0 200 OK\r\n\r\n" + body, framed(body)]
        with fake(lambda number: (framings[number % 3], number % 3 == 1)) as server:
            report = bench(server.url, *FLAGS, "-n", 12, "--concurrency", 1, "--no-stream")
        self.assertEqual((report["answered"], report["errors"]), (12, 0))
        self.assertEqual(report["answers_different"], 1)

    def test_an_interrupt_prints_what_was_seen(self):
        def script(number):
            if number >= 4:
                time.sleep(60)
            return framed(GOOD), False

        with fake(script) as server:
            running = subprocess.Popen([served.BINARY, "bench", "serve", "--url", server.url, "--json",
                                        *map(str, FLAGS), "-n", "10", "--concurrency", "2"],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            served.wait_until(lambda: server.count == 6)
            running.send_signal(signal.SIGINT)
            out, _ = running.communicate(timeout=20)
        report = json.loads(out)
        self.assertEqual(running.returncode, 130)
        self.assertTrue(report["stopped"])
        self.assertEqual((report["answered"], report["unfinished"], report["errors"]), (4, 2, 0))


if __name__ == "__main__":
    served.run(sys.modules[__name__])
