"""Clients that mean harm: others are undisturbed, and nothing is left behind."""

import contextlib
import json
import re
import random
import socket
import struct
import sys
import threading
import time
import unittest

import served

BODY = {"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0, "seed": 1}


def posted(body, *headers):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [b"POST /v1/completions HTTP/1.1", b"Host: localhost", b"Content-Type: application/json",
             f"Content-Length: {len(data)}".encode(), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + data


def reset(raw):
    """Closes without a good-bye: the other side gets an RST."""
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.close()


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = served.Served(
            served.STORIES, "--request-timeout", "1", "--write-timeout", "1", "--idle-timeout", "2",
            "--max-connections-per-client", "200", "--max-body-bytes", "1MiB",
        )
        cls.expected = cls.server.post("/v1/completions", BODY)[1]["choices"]
        cls.at_rest = cls.server.descriptors()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def check_others(self):
        status, reply = self.server.post("/v1/completions", BODY)
        self.assertEqual(status, 200)
        self.assertEqual(reply["choices"], self.expected)

    def tearDown(self):
        """Whatever was sent: the next is answered as ever, and nothing is left."""
        self.check_others()
        served.wait_until(self.server.is_at_rest)
        served.wait_until(lambda: self.server.descriptors() <= self.at_rest)

    def test_half_requests_of_every_length(self):
        whole = posted(BODY)
        for length in range(len(whole)):
            with self.server.socket() as raw:
                raw.sendall(whole[:length])
                if length % 2:
                    reset(raw)

    def test_slow_loris_is_cut_off_and_others_are_served_meanwhile(self):
        loris = [self.server.socket() for _ in range(100)]
        whole = posted(BODY)
        begin = time.monotonic()
        alive = dict(enumerate(loris))
        sent = 0
        while alive and time.monotonic() - begin < 10:
            for index, raw in list(alive.items()):
                try:
                    raw.sendall(whole[sent : sent + 1])
                except OSError:
                    del alive[index]
            sent += 1
            self.check_others()
            time.sleep(0.1)
        self.assertEqual(alive, {}, "who sends a byte at a time is cut off")
        for raw in loris:
            raw.close()

    def test_a_slow_reader_waits_alone_and_is_dropped(self):
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", self.server.port))
        # More than the buffers of both systems hold.
        slow.sendall(posted({"prompt": "Once", "max_tokens": 450, "ignore_eos": True, "n": 60,
                             "stream": True, "logprobs": 5}))
        self.assertIn(b"200 OK", slow.recv(1024))
        longest = 0.0
        begin = time.monotonic()
        while self.server.snapshot()["now"]["answers_running"] > 0:
            asked = time.monotonic()
            self.check_others()
            longest = max(longest, time.monotonic() - asked)
            self.assertLess(time.monotonic() - begin, 60)
        self.assertLess(longest, 5)
        time.sleep(1.5)
        with contextlib.suppress(ConnectionResetError):
            slow.settimeout(10)
            text = b""
            while piece := slow.recv(1 << 20):
                text += piece
            self.assertNotIn(b"[DONE]", text, "it was not dropped")
        slow.close()

    def test_who_reads_slowly_but_steadily_gets_all(self):
        body = json.dumps({"input": "x" * 12_000_000}).encode()
        with served.Served(served.STORIES, "--write-timeout", "1") as server, socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 17)
            slow.settimeout(60)
            slow.connect(("127.0.0.1", server.port))
            slow.sendall(
                b"POST /v1/responses/compact HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            begin, got = None, b""
            while piece := slow.recv(100_000):
                begin = begin or time.monotonic()
                got += piece
                time.sleep(max(0, begin + len(got) / 3e6 - time.monotonic()))
            head, reply = got.split(b"\r\n\r\n", 1)
            self.assertEqual(len(reply), int(re.search(rb"Content-Length: (\d+)", head)[1]))
            self.assertGreater(len(reply), 12_000_000)

    def test_who_does_not_read_is_computed_no_further_until_it_reads(self):
        def chosen():
            _, text = server.request("GET", "/metrics")
            return int(re.search(r"^llamacpp:tokens_predicted_total (\d+)$", text, re.M).group(1))

        def paused():
            _, text = server.request("GET", "/metrics")
            return int(re.search(r"^pagoda:answers_paused\{.*\} (\d+)$", text, re.M).group(1))

        with served.Served(served.STORIES, "--write-timeout", "60") as server, socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", server.port))
            body = {"prompt": "Once", "max_tokens": 450, "ignore_eos": True, "n": 60, "stream": True, "logprobs": 5}
            slow.sendall(posted(body).replace(b"Host: localhost\r\n", b"Host: localhost\r\nConnection: close\r\n"))

            # The system takes bytes for the client late, too: each time the answers go on for a moment.
            def is_still():
                before = chosen()
                time.sleep(0.5)
                return paused() == 60 and chosen() == before

            served.wait_until(is_still)
            stopped_at = chosen()
            self.assertLess(stopped_at, 60 * 450)
            self.assertEqual(server.post("/v1/completions", BODY)[1]["choices"], self.expected)
            time.sleep(0.5)
            self.assertEqual(paused(), 60)
            self.assertLess(chosen() - stopped_at, 200, "those of others alone")
            slow.settimeout(60)
            text = b""
            while piece := slow.recv(1 << 20):
                text += piece
            self.assertIn(b"[DONE]", text)
            self.assertEqual(text.count(b'"finish_reason":"length"'), 60)
            self.assertEqual(paused(), 0)

    def test_an_idle_connection_is_closed(self):
        with self.server.socket(timeout=10) as raw:
            raw.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertIn(b"200 OK", raw.recv(4096))
            self.assertEqual(raw.recv(4096), b"")

    def test_leaving_at_every_byte_of_an_answer(self):
        for stream in (False, True):
            request = posted({**BODY, "max_tokens": 3, "stream": stream}, b"Connection: close")
            length = len(self.server.raw(request))
            for count in range(length):
                with self.server.socket() as raw:
                    raw.sendall(request)
                    left = count
                    while left > 0 and (piece := raw.recv(left)):
                        left -= len(piece)
                    if count % 2:
                        reset(raw)

    def test_leaving_before_the_first_token(self):
        for _ in range(100):
            with self.server.socket() as raw:
                raw.sendall(posted({**BODY, "max_tokens": 400, "ignore_eos": True, "n": 8}))
                reset(raw)

    def test_one_client_does_not_take_all_connections(self):
        mine = [self.server.socket() for _ in range(200)]
        with self.server.socket(timeout=10) as raw:
            with contextlib.suppress(ConnectionResetError):
                self.assertIn(b" 429 ", raw.recv(4096))
        for raw in mine:
            raw.close()
        served.wait_until(lambda: self.server.descriptors() <= self.at_rest)

    def test_requests_sent_ahead_wait_without_filling_memory(self):
        before = self.server.resident_bytes()
        with self.server.socket() as raw:
            raw.settimeout(2)
            with contextlib.suppress(OSError):
                raw.sendall(posted({**BODY, "max_tokens": 450, "ignore_eos": True}) * 100_000)
            self.assertLess(self.server.resident_bytes() - before, 16 << 20)
            reset(raw)

    def test_random_bytes_and_broken_requests(self):
        draw = random.Random(1)
        whole = posted(BODY)
        for _ in range(300):
            data = bytearray(whole)
            for _ in range(draw.randrange(1, 6)):
                at = draw.randrange(len(data))
                if draw.random() < 0.5:
                    data[at] = draw.randrange(256)
                else:
                    data[at:at] = draw.choice([b"\r", b"\n", b"\0", b" ", b":", b"\xff"])
            answer = self.server.raw(bytes(data), half_close=True, timeout=20)
            if answer:
                self.assertRegex(answer, rb"^HTTP/1\.[01] [2-5]\d\d ")
        for _ in range(50):
            self.server.raw(draw.randbytes(draw.randrange(1, 400)), half_close=True, timeout=20)

    def test_schemas_of_ten_thousand_levels_are_refused_with_their_place_beside_a_stream(self):
        """Whoever streams meanwhile gets the tokens that it gets alone."""
        deep = '{"type":"object","properties":{"a":' * 10_000 + "true" + "}}" * 10_000
        bodies = {
            "guided_json": '{"prompt":"a","guided_json":%s}' % deep,
            "structured_outputs.json": json.dumps({"prompt": "a", "structured_outputs": {"json": deep}}),
        }
        long = {**BODY, "max_tokens": 200, "ignore_eos": True}
        alone = self.server.post("/v1/completions", long)[1]["choices"]
        beside = []
        thread = threading.Thread(target=lambda: beside.append(self.server.post("/v1/completions", long)))
        thread.start()
        for path, body in list(bodies.items()) * 5:
            reply, text = self.server.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
            self.assertEqual(reply.status, 400)
            self.assertTrue(json.loads(text)["error"]["param"].startswith(path), text[:300])
        thread.join()
        self.assertEqual(beside[0][1]["choices"], alone)

    def test_no_byte_of_a_smuggled_request_is_answered(self):
        smuggled = b"GET /server_info HTTP/1.1\r\nHost: localhost\r\n\r\n"
        chunked = b"Transfer-Encoding: chunked"
        shapes = [
            [b"Content-Length: 4", chunked], [chunked, b"Content-Length: 4"],
            [b"Transfer-Encoding : chunked"], [b"Transfer-Encoding:\x0bchunked"],
            [b"Transfer-Encoding: xchunked"], [b"Transfer-Encoding: chunked, identity"],
            [b"X: y\r\n Transfer-Encoding: chunked"], [b"Content-Length: 0, 4"],
            [b"Content-Length: 4", b"Content-Length: 5"], [b"Content-Length: +4"],
            [b"X: y\nContent-Length: 4"], [b"X: y\rContent-Length: 4"],
        ]
        for lines in shapes:
            head = b"\r\n".join([b"POST /tokenize HTTP/1.1", b"Host: localhost", *lines]) + b"\r\n\r\n"
            answer = self.server.raw(head + b"0\r\n\r\n" + smuggled, half_close=True)
            self.assertIn(b"HTTP/1.1 400 ", answer, lines)
            self.assertEqual(answer.count(b"HTTP/1.1 "), 1, lines)

    def test_all_at_once(self):
        """Harm from many sides, and an honest stream whose every byte is as alone."""
        stop = threading.Event()
        whole = posted({**BODY, "max_tokens": 30})

        def harm(seed):
            draw = random.Random(seed)
            while not stop.is_set():
                with contextlib.suppress(OSError), self.server.socket() as raw:
                    raw.sendall(whole[: draw.randrange(len(whole) + 1)])
                    if draw.random() < 0.5:
                        raw.settimeout(0.2)
                        raw.recv(draw.randrange(1, 2000))
                    reset(raw)

        def honest():
            reply, text = self.server.request(
                "POST", "/v1/completions", {**BODY, "max_tokens": 100, "stream": True}
            )
            self.assertEqual(reply.status, 200)
            return [event["choices"][0]["text"] for event in served.stream_events(text)]

        alone = honest()
        villains = [threading.Thread(target=harm, args=(seed,)) for seed in range(4)]
        for villain in villains:
            villain.start()
        try:
            for _ in range(10):
                self.assertEqual(honest(), alone)
        finally:
            stop.set()
            for villain in villains:
                villain.join()


if __name__ == "__main__":
    served.run(sys.modules[__name__])
