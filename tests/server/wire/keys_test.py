"""Keys, certificates and pages over the wire, and files that are read again."""

import contextlib
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import served

BODY = {"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0}
KEYS = "tenant anna\nkey anna-key anna\ntenant ops\nkey ops-key ops admin\n"


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


class Folder:
    """A folder for keys and certificates, and the flags that name them."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def key_flags(self, keys=KEYS):
        return ["--api-keys", self.write("keys", keys), "--secret-file", self.path("secret")]

    def certificate_flags(self, kind="ec"):
        sizes = {"ec": "ec_paramgen_curve:P-256", "rsa": "rsa_keygen_bits:2048"}
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", kind, "-pkeyopt", sizes[kind], "-nodes",
             "-days", "2", "-subj", "/CN=pagoda", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", self.path("key.pem"), "-out", self.path("cert.pem")],
            check=True, capture_output=True,
        )
        return ["--ssl-certfile", self.path("cert.pem"), "--ssl-keyfile", self.path("key.pem")]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()


class Keys(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.folder = self.stack.enter_context(Folder())

    def start(self, *flags):
        return self.stack.enter_context(served.Served(served.STORIES, *flags))

    def test_private_prompts_are_shown_to_admins_where_the_operator_says_so_and_to_nobody_else(self):
        secret = "The little dog found a golden key under the old oak tree"
        for flags, is_shown in (((), False), (("--show-prompts-to-admins",), True)):
            server = self.start(*self.folder.key_flags(), *flags)
            body = {**BODY, "prompt": secret}
            self.assertEqual(server.post("/v1/completions", body, bearer("anna-key"))[0], 200)
            for path in ("/cache/branch", "/cache/map"):
                self.assertEqual(server.get(path, bearer("anna-key"))[0], 403)
                self.assertEqual(server.get(path)[0], 401)
            top = server.get("/cache/branch", bearer("ops-key"))[1]["below"]
            self.assertEqual([branch["tenant"] for branch in top], ["anna"])
            asked = server.get(f"/cache/branch?node={top[0]['node']}", bearer("ops-key"))[1]["branch"]
            served.wait_until(lambda: server.get("/cache/map", bearer("ops-key"))[1].get("branches"))
            drawn = server.get("/cache/map", bearer("ops-key"))[1]["branches"]
            for text in (top[0]["text"], asked["text"], drawn[0]["text"]):
                if is_shown:
                    self.assertIn("golden key", text)
                else:
                    self.assertIsNone(text)

    def test_without_keys_text_is_shown_to_this_machine_and_to_no_client_of_a_proxy(self):
        server = self.start()
        self.assertEqual(server.post("/v1/completions", BODY)[0], 200)
        served.wait_until(lambda: server.get("/cache/map")[1].get("branches"))
        for path, branches in (("/cache/branch", "below"), ("/cache/map", "branches")):
            self.assertIn("Once upon", server.get(path)[1][branches][0]["text"])
            for header in ("X-Forwarded-For", "Forwarded", "Via"):
                self.assertIsNone(server.get(path, {header: "10.0.0.9"})[1][branches][0]["text"])

    def test_a_request_needs_a_good_key(self):
        server = self.start(*self.folder.key_flags())
        self.assertEqual(server.get("/health")[0], 200)
        reply, text = server.request("POST", "/v1/completions", BODY)
        self.assertEqual(reply.status, 401)
        self.assertEqual(reply.headers["WWW-Authenticate"], "Bearer")
        self.assertEqual(json.loads(text)["error"]["code"], "invalid_api_key")
        self.assertEqual(server.post("/v1/completions", BODY, bearer("wrong"))[0], 401)
        self.assertEqual(server.post("/v1/completions", BODY, bearer("anna-key"))[0], 200)
        self.assertEqual(server.get("/server_info", bearer("anna-key"))[0], 403)
        self.assertEqual(server.get("/server_info", bearer("ops-key"))[0], 200)
        self.assertEqual(os.stat(self.folder.path("secret")).st_mode & 0o777, 0o600)
        self.assertIn("Authorization: Bearer $KEY", server.greeting)

    def test_without_a_key_nobody_sends_a_body(self):
        server = self.start(*self.folder.key_flags())
        head = (
            b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 30000000\r\nX-Request-Id: mine\r\n\r\n{"
        )
        begin = time.monotonic()
        answer = server.raw(head)
        self.assertIn(b"HTTP/1.1 401 ", answer)
        self.assertIn(b"X-Request-Id: mine\r\n", answer)
        self.assertIn(b"Connection: close\r\n", answer)
        self.assertLess(time.monotonic() - begin, 10)

    def test_one_key_may_do_everything(self):
        server = self.start("--api-key", "only", "--secret-file", self.folder.path("secret"))
        self.assertEqual(server.get("/v1/models")[0], 401)
        self.assertEqual(server.get("/server_info", bearer("only"))[0], 200)
        first = server.post("/v1/completions", {**BODY, "cache_public_upto": 16}, bearer("only"))
        self.assertEqual(first[0], 200)

    def test_a_key_comes_from_the_environment_too(self):
        os.environ["PAGODA_API_KEY"] = "from-environment"
        self.addCleanup(os.environ.pop, "PAGODA_API_KEY")
        server = self.start("--secret-file", self.folder.path("secret"))
        self.assertEqual(server.get("/v1/models")[0], 401)
        self.assertEqual(server.get("/v1/models", bearer("from-environment"))[0], 200)

    def test_pagoda_inspect_takes_an_admins_key(self):
        server = self.start(*self.folder.key_flags())
        inspect = [served.BINARY, "inspect", server.url]
        self.assertIn("401", subprocess.run(inspect, capture_output=True, text=True).stderr)
        text = subprocess.check_output([*inspect, "--api-key", "ops-key"], text=True)
        self.assertIn("blocks", text)

    def test_a_bad_file_is_an_error_with_its_line(self):
        flags = self.folder.key_flags("tenant anna\nkey k nobody\n")
        with served.Served(served.STORIES, *flags, wait=False) as server:
            self.assertEqual(server.wait(), 1)
            self.assertIn("keys:2: word 3: expected a tenant", server.stderr())

    def test_sighup_reads_keys_again_and_keeps_them_where_the_file_is_bad(self):
        server = self.start(*self.folder.key_flags())

        def status(key):
            return server.post("/v1/completions", BODY, bearer(key))[0]

        self.assertEqual(status("anna-key"), 200)
        self.folder.write("keys", "tenant bert output_tokens=4\nkey bert-key bert\n")
        server.signal(signal.SIGHUP)
        served.wait_until(lambda: status("anna-key") == 401)
        self.assertEqual(status("bert-key"), 400, "its limit holds: 8 tokens are too many")
        self.folder.write("keys", "tenant bert output_tokens=100\nkey bert-key bert\n")
        server.signal(signal.SIGHUP)
        served.wait_until(lambda: status("bert-key") == 200)
        self.folder.write("keys", "nonsense\n")
        server.signal(signal.SIGHUP)
        served.wait_until(lambda: "the old keys stay" in server.stderr())
        self.assertIn("keys:1:", server.stderr())
        self.assertEqual(status("bert-key"), 200)
        self.assertEqual(status("anna-key"), 401, "a bad file opens no door")

    def test_signals_under_load_disturb_nobody(self):
        server = self.start(*self.folder.key_flags(), "-t", "1")
        expected = server.post("/v1/completions", BODY, bearer("anna-key"))[1]["choices"][0]["text"]
        wrong = []
        stop = threading.Event()

        def ask():
            while not stop.is_set():
                status, reply = server.post("/v1/completions", BODY, bearer("anna-key"))
                if status != 200 or reply["choices"][0]["text"] != expected:
                    wrong.append((status, reply))

        askers = [threading.Thread(target=ask) for _ in range(4)]
        for asker in askers:
            asker.start()
        for _ in range(50):
            server.signal(signal.SIGHUP)
            time.sleep(0.02)
        stop.set()
        for asker in askers:
            asker.join()
        self.assertEqual(wrong, [])
        server.signal()
        self.assertEqual(server.wait(), 0)

    def test_guessing_keys_disturbs_nobody_and_leaves_nothing(self):
        server = self.start(*self.folder.key_flags())
        server.headers = bearer("ops-key")
        expected = server.post("/v1/completions", BODY)[1]["choices"][0]["text"]
        before = server.descriptors()
        statuses = set()

        def guess(first):
            connection = server.connect()
            for i in range(first, first + 500):
                connection.request("GET", "/v1/models", headers=bearer(f"anna-kez{i}"))
                reply = connection.getresponse()
                reply.read()
                statuses.add(reply.status)
            connection.close()

        guessers = [threading.Thread(target=guess, args=(1000 * i,)) for i in range(4)]
        for guesser in guessers:
            guesser.start()
        for _ in range(20):
            reply = server.post("/v1/completions", BODY)[1]
            self.assertEqual(reply["choices"][0]["text"], expected)
        for guesser in guessers:
            guesser.join()
        self.assertEqual(statuses, {401})
        served.wait_until(lambda: server.descriptors() <= before)


class Pages(unittest.TestCase):
    def test_of_others_may_ask_only_where_the_flag_says_so(self):
        with served.Served(served.STORIES, "--cors-origin", "https://chat.example") as server:
            evil = {"Origin": "https://evil.example"}
            self.assertEqual(server.post("/v1/completions", BODY, evil)[0], 403)
            reply, _ = server.request("OPTIONS", "/v1/completions", None, evil)
            self.assertEqual(reply.status, 403)
            self.assertIsNone(reply.headers["Access-Control-Allow-Origin"])
            good = {"Origin": "https://chat.example"}
            reply, _ = server.request("OPTIONS", "/v1/completions", None, good)
            self.assertEqual(reply.status, 204)
            self.assertEqual(reply.headers["Access-Control-Allow-Origin"], "https://chat.example")
            allowed = reply.headers["Access-Control-Allow-Headers"].split(", ")
            for header in ("Authorization", "X-Session-Id", "X-Request-Id", "X-Api-Key"):
                self.assertIn(header, allowed)
            for stream in (False, True):
                body = {**BODY, "stream": stream}
                reply, _ = server.request("POST", "/v1/completions", body, good)
                self.assertEqual(reply.status, 200)
                self.assertEqual(
                    reply.headers["Access-Control-Allow-Origin"], "https://chat.example"
                )
            own = {"Origin": server.url}
            self.assertEqual(server.post("/v1/completions", BODY, own)[0], 200)

    def test_every_reply_carries_the_requests_id(self):
        with served.Served() as server:
            for stream in (False, True):
                for given in ("id-1", None):
                    headers = {"X-Request-Id": given} if given else {}
                    reply, _ = server.request(
                        "POST", "/v1/completions", {**BODY, "stream": stream}, headers
                    )
                    told = reply.headers["X-Request-Id"]
                    self.assertEqual(told, given) if given else self.assertEqual(len(told), 16)
            reply, _ = server.request("GET", "/nowhere", None, {"X-Request-Id": "id-2"})
            self.assertEqual(reply.headers["X-Request-Id"], "id-2")


class Tls(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.folder.cleanup)

    def socket(self, server):
        context = ssl.create_default_context(cafile=self.folder.path("cert.pem"))
        return context.wrap_socket(server.socket(), server_hostname="127.0.0.1")

    def exchange(self, server, body, wire=None):
        data = json.dumps(body).encode()
        with contextlib.closing(wire or self.socket(server)) as wire:
            wire.sendall(
                b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                b"Content-Type: application/json\r\n"
                + f"Content-Length: {len(data)}\r\n\r\n".encode()
                + data
            )
            answer = b""
            while piece := wire.recv(65536):  # raises where the end is not told
                answer += piece
            return answer

    def test_serves_answers_and_streams(self):
        with served.Served(served.STORIES, *self.folder.certificate_flags()) as server:
            self.assertIn("https://127.0.0.1", server.greeting)
            self.assertIn(b"200 OK", self.exchange(server, BODY))
            stream = self.exchange(server, {**BODY, "max_tokens": 200, "stream": True})
            self.assertIn(b"data: [DONE]\n\n", stream)

    def test_requests_may_follow_each_other_on_one_connection(self):
        with served.Served(served.STORIES, *self.folder.certificate_flags()) as server:
            with contextlib.closing(self.socket(server)) as wire:
                for _ in range(20):
                    data = json.dumps({**BODY, "stream": True}).encode()
                    wire.sendall(
                        b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                        b"Content-Type: application/json\r\n"
                        + f"Content-Length: {len(data)}\r\n\r\n".encode()
                        + data
                    )
                    answer = b""
                    while not answer.endswith(b"0\r\n\r\n"):
                        piece = wire.recv(65536)
                        self.assertTrue(piece, answer)
                        answer += piece
                    self.assertIn(b"200 OK", answer)

    def test_what_is_no_tls_is_closed_and_others_go_on(self):
        with served.Served(served.STORIES, *self.folder.certificate_flags()) as server:
            for sent in (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\xff\xff" * 50):
                self.assertNotIn(b"HTTP/1.1 200", server.raw(sent, half_close=True))
            self.assertIn(b"200 OK", self.exchange(server, BODY))

    def test_sighup_reads_the_certificate_again_and_keeps_it_where_the_file_is_bad(self):
        with served.Served(served.STORIES, *self.folder.certificate_flags()) as server:
            old = self.socket(server)
            first = old.getpeercert(True)
            self.folder.certificate_flags()
            server.signal(signal.SIGHUP)

            def seen():
                context = ssl.create_default_context()
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
                with context.wrap_socket(server.socket()) as wire:
                    return wire.getpeercert(True)

            served.wait_until(lambda: seen() != first)
            self.assertIn(b"200 OK", self.exchange(server, BODY, old))
            second = seen()
            self.folder.write("cert.pem", "nonsense")
            server.signal(signal.SIGHUP)
            served.wait_until(lambda: "the old certificate stays" in server.stderr())
            self.assertEqual(seen(), second)

    def test_our_own_clients_check_the_certificate_and_bring_a_key(self):
        flags = [*self.folder.certificate_flags(), *self.folder.key_flags()]
        with served.ChatServed(*flags) as server:
            url = f"https://127.0.0.1:{server.port}"
            question = self.folder.write("question.json", json.dumps({"prompt": "Once upon a time"}))
            commands = [["inspect", url], ["explain", url, "--file", question],
                        ["chat", "--url", url, "-p", "Hello", "--max-tokens", "4"]]
            believed = ["--ca-file", self.folder.path("cert.pem")]

            def run(command, *more, key="ops-key"):
                return subprocess.run([served.BINARY, *command, "--api-key", key, *more],
                                      capture_output=True, text=True, timeout=60)

            for command in commands:
                unknown = run(command)
                self.assertNotEqual(unknown.returncode, 0, command)
                self.assertIn("certificate verify failed", unknown.stderr)
                for trust in (believed, ["--insecure"]):
                    good = run(command, *trust)
                    self.assertEqual(good.returncode, 0, good.stderr)
                    self.assertTrue(good.stdout.strip())
                self.assertIn("401", run(command, *believed, key="wrong").stderr)
            elsewhere = run(["inspect", f"https://localhost:{server.port}"], *believed)
            self.assertIn("certificate verify failed", elsewhere.stderr, "another host's name")
            nowhere = run(["inspect", url], "--ca-file", "/nowhere.pem")
            self.assertIn("--ca-file: /nowhere.pem", nowhere.stderr)

    def test_a_key_of_another_certificate_is_an_error(self):
        flags = self.folder.certificate_flags()
        os.rename(self.folder.path("key.pem"), self.folder.path("old.pem"))
        self.folder.certificate_flags()
        os.rename(self.folder.path("old.pem"), self.folder.path("key.pem"))
        with served.Served(served.STORIES, *flags, wait=False) as server:
            self.assertEqual(server.wait(), 1)
            self.assertIn("key.pem", server.stderr())


if __name__ == "__main__":
    served.run(sys.modules[__name__])
