"""What a hostile or broken client can send: a clear error, and nobody else is disturbed."""

import json
import socket
import sys
import time
import unittest

import served

BODY = {"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0}


def head(raw):
    return raw.split(b"\r\n", 1)[0].decode()


def error(raw):
    return json.loads(raw.split(b"\r\n\r\n", 1)[1])["error"]


def posted(body, length=None):
    length = len(body) if length is None else length
    return (
        b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        + f"Content-Length: {length}\r\n\r\n".encode()
        + body
    )


class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = served.Served(
            served.STORIES, "--max-body-bytes", "1MiB", "--request-timeout", "1",
            "--max-connections", "64",
        )
        cls.expected = cls.server.post("/v1/completions", BODY)[1]["choices"][0]["text"]

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def tearDown(self):
        """Whatever was sent, the next request is answered as ever."""
        status, reply = self.server.post("/v1/completions", BODY)
        self.assertEqual(status, 200)
        self.assertEqual(reply["choices"][0]["text"], self.expected)

    def test_the_limit_of_outputs_is_a_quarter_of_the_context_and_printed(self):
        info = self.server.get("/server_info")[1]
        self.assertEqual(info["max_output_tokens"], info["max_model_len"] // 4)
        self.assertIn(f"at most {info['max_output_tokens']} tokens (--max-output-tokens)", self.server.greeting)

    def test_half_a_header_is_told_and_closed(self):
        answer = self.server.raw(b"POST /v1/comp", half_close=True)
        self.assertIn(" 400 ", head(answer))

    def test_half_a_body_is_told_and_closed(self):
        answer = self.server.raw(posted(b'{"prompt":', 100), half_close=True)
        self.assertIn(" 400 ", head(answer))
        self.assertEqual(error(answer)["code"], "incomplete_request")

    def test_a_request_that_does_not_arrive_is_timed_out(self):
        for sent in (b"POST /v1/comp", posted(b'{"prompt":', 100)):
            begin = time.monotonic()
            self.assertIn(" 408 ", head(self.server.raw(sent)))
            self.assertLess(time.monotonic() - begin, 10)

    def test_a_giant_header_is_431(self):
        answer = self.server.raw(b"GET /health HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n")
        self.assertIn(" 431 ", head(answer))

    def test_many_headers_are_431(self):
        answer = self.server.raw(
            b"GET /health HTTP/1.1\r\n" + b"X: a\r\n" * 20_000 + b"\r\n"
        )
        self.assertIn(" 431 ", head(answer))

    def test_a_giant_body_is_413_whether_announced_or_not(self):
        self.assertIn(" 413 ", head(self.server.raw(posted(b"x" * (2 << 20)))))
        self.assertIn(" 413 ", head(self.server.raw(posted(b"x", 1 << 60))))
        chunked = (
            b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        self.assertIn(" 413 ", head(self.server.raw(chunked + chunk * 32)))

    def test_a_body_where_none_is_taken_is_413_however_it_arrives(self):
        lengths = {b"Content-Length: 5\r\n": b"hello",
                   b"Transfer-Encoding: chunked\r\n": b"0\r\n\r\n"}
        for kind in (b"", b"Content-Type: application/json\r\n"):
            for length, body in lengths.items():
                sent = (b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + kind
                        + length + b"\r\n")
                for pause in (0, 0.2):
                    with self.server.socket() as raw:
                        if pause:
                            raw.sendall(sent)
                            time.sleep(pause)
                            raw.sendall(body)
                        else:
                            raw.sendall(sent + body)
                        answer = b""
                        while piece := raw.recv(65536):
                            answer += piece
                    self.assertIn(" 413 ", head(answer), (kind, length, pause))
                    self.assertEqual(error(answer)["code"], "no_body_expected")

    def test_what_is_no_http_is_400(self):
        for sent in (b"hello\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20,
                     b"GET / HTTP/9.9\r\n\r\n",
                     b"POST /tokenize HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
                     b"POST /tokenize HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n"):
            self.assertIn(" 400 ", head(self.server.raw(sent, half_close=True)), sent[:40])

    def test_json_is_read_strictly(self):
        bodies = {
            b"\xff\xfe": "invalid_json",
            b'{"prompt": "\xc3("}': "invalid_json",
            b'{"temperature": NaN, "prompt": "a"}': "invalid_json",
            b'{"prompt": "a", "prompt": "b"}': "invalid_json",
            b'{"prompt": ' + b"[" * 100_000 + b"]" * 100_000 + b"}": "invalid_json",
            b'{"temperature": 1e999, "prompt": "a"}': "invalid_json",
            b"": None,
        }
        for body, code in bodies.items():
            reply, text = self.server.request(
                "POST", "/v1/completions", body, {"Content-Type": "application/json"}
            )
            self.assertEqual(reply.status, 400, body[:40])
            self.assertEqual(json.loads(text)["error"]["code"], code, body[:40])

    def test_requests_may_be_sent_ahead(self):
        body = json.dumps({**BODY, "max_tokens": 4}).encode()
        last = posted(body).replace(b"Host: localhost", b"Host: localhost\r\nConnection: close")
        answer = self.server.raw(posted(body) * 2 + last)
        self.assertEqual(answer.count(b"HTTP/1.1 200 OK"), 3)

    def test_more_connections_than_allowed_wait_their_turn(self):
        idle = [self.server.socket() for _ in range(64)]
        late = self.server.socket()
        late.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        late.settimeout(0.5)
        with self.assertRaises(socket.timeout):
            late.recv(100)
        for one in idle:
            one.close()
        late.settimeout(20)
        self.assertIn(b"200 OK", late.recv(100))
        late.close()

    def test_http_1_0_gets_a_stream_that_ends_with_the_connection(self):
        body = json.dumps({**BODY, "stream": True}).encode()
        answer = self.server.raw(posted(body).replace(b"HTTP/1.1", b"HTTP/1.0", 1))
        self.assertNotIn(b"chunked", answer.lower())
        self.assertTrue(answer.endswith(b"data: [DONE]\n\n"))

    def test_head_has_the_length_and_no_body(self):
        answer = self.server.raw(b"HEAD /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertIn(b"Content-Length: 15", answer)
        self.assertTrue(answer.endswith(b"\r\n\r\n"))

    def test_a_client_that_expects_to_be_asked_is_asked(self):
        body = json.dumps(BODY).encode()
        with self.server.socket() as raw:
            header, _ = posted(body).split(b"\r\n\r\n", 1)
            raw.sendall(header + b"\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n")
            self.assertIn(b"100 Continue", raw.recv(100))
            raw.sendall(body)
            answer = b""
            while piece := raw.recv(65536):
                answer += piece
        self.assertIn(b"200 OK", answer)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
