"""Who gets in, by which name, with which files; and HTTP by the letter of RFC 9112."""

import contextlib
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
import unittest
import warnings

import served
from keys_test import BODY, KEYS, Folder, bearer

SECRET = "sk-8f3aQ"


def ended(*flags, environment=None):
    """A server that is not to start: its status and what it said."""
    words = [served.BINARY, "serve", served.STORIES, "--port", "0", "--kv-cache-memory-bytes",
             "16MiB", *flags]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=30,
                              env={**os.environ, **(environment or {})})
    except subprocess.TimeoutExpired:
        return None, "it serves"
    return done.returncode, done.stderr


class Doors(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.folder = self.stack.enter_context(Folder())

    def start(self, *flags, **options):
        return self.stack.enter_context(served.Served(served.STORIES, *flags, **options))


class Files(Doors):
    def replace_keys(self, make):
        path = self.folder.path("keys")
        if os.path.isdir(path):
            os.rmdir(path)
        elif os.path.lexists(path):
            os.remove(path)
        make(path)

    def test_sighup_with_a_file_that_cannot_be_read_keeps_the_old_keys(self):
        server = self.start(*self.folder.key_flags())
        faults = {
            "folder": os.mkdir,
            "missing": lambda path: None,
            "unreadable": lambda path: os.symlink("/proc/self/mem", path),
            "endless": lambda path: os.symlink("/dev/zero", path),
            "pipe": os.mkfifo,
            "empty": lambda path: self.folder.write("keys", ""),
        }
        for count, (name, make) in enumerate(faults.items(), start=1):
            self.replace_keys(make)
            server.signal(signal.SIGHUP)
            served.wait_until(lambda: server.stderr().count("the old keys stay") == count)
            status = server.post("/v1/completions", BODY, bearer("anna-key"))[0]
            self.assertEqual(status, 200, name)
            self.assertEqual(server.get("/v1/models", bearer("nobody"))[0], 401, name)
        self.replace_keys(lambda path: self.folder.write("keys", "tenant b\nkey bert-key b\n"))
        server.signal(signal.SIGHUP)
        served.wait_until(lambda: server.get("/v1/models", bearer("bert-key"))[0] == 200)

    def test_a_folder_where_a_file_belongs_is_an_error_at_the_start(self):
        folder = self.folder.path("folder")
        os.mkdir(folder)
        for flags in (["--api-keys", folder], ["--api-key", "k", "--secret-file", folder],
                      ["--ssl-certfile", folder, "--ssl-keyfile", folder],
                      ["--chat-template", folder]):
            status, said = ended(*flags)
            self.assertEqual(status, 1, (flags, said))
            self.assertIn(folder, said)
            self.assertNotIn("terminate", said)

    def test_files_that_others_may_read_are_told(self):
        flags = self.folder.key_flags()
        hashed = "tenant a\nkey sha256:" + "9f" * 32 + " a\n"
        for mode, text, told in ((0o644, KEYS, True), (0o640, KEYS, True), (0o600, KEYS, False),
                                 (0o644, hashed, False)):
            os.chmod(self.folder.write("keys", text), mode)
            with served.Served(served.STORIES, *flags) as server:
                self.assertEqual("others may read the keys" in server.stderr(), told, oct(mode))
                if not told:
                    os.chmod(self.folder.write("keys", KEYS), 0o644)
                    server.signal(signal.SIGHUP)
                    served.wait_until(lambda: "others may read the keys" in server.stderr())
        os.chmod(self.folder.path("secret"), 0o644)
        status, said = ended(*flags)
        self.assertEqual(status, 1)
        self.assertIn("others may read this secret", said)

    def test_a_certificates_key_that_everyone_may_read_is_told(self):
        flags = self.folder.certificate_flags()
        for mode in (0o600, 0o640, 0o644):
            os.chmod(self.folder.path("key.pem"), mode)
            with served.Served(served.STORIES, *flags) as server:
                self.assertEqual("--ssl-keyfile: everyone may read" in server.stderr(),
                                 mode == 0o644)

    def test_no_word_of_a_key_file_is_ever_said(self):
        lines = [f"{SECRET} anna", f"key anna {SECRET}", f"key other anna {SECRET}",
                 f"tenant anna {SECRET}", f"tenant two weight={SECRET}", f"Key {SECRET} anna",
                 f"key sha256:{SECRET} anna", f"tenant {SECRET}/"]
        server = self.start(*self.folder.key_flags())
        for count, line in enumerate(lines, start=1):
            flags = self.folder.key_flags(KEYS + line + "\n")
            status, said = ended(*flags)
            self.assertEqual(status, 1, line)
            self.assertRegex(said, r"keys:5: word \d", line)
            self.assertNotIn(SECRET, said)
            server.signal(signal.SIGHUP)
            served.wait_until(lambda: server.stderr().count("the old keys stay") == count)
        self.assertNotIn(SECRET, server.stderr())


class Flags(Doors):
    def test_a_mistyped_flag_does_not_show_its_value(self):
        for flags in ([f"--api-kye={SECRET}"], ["--api-kye", SECRET], ["-x", SECRET],
                      [f"--apikey={SECRET}", "--prot", "1"]):
            status, said = ended(*flags)
            self.assertEqual(status, 2, said)
            self.assertIn("unknown option", said)
            self.assertNotIn(SECRET, said)
        for flags in (["api-key", SECRET], ["\u2014api-key", SECRET], ["--api-key", "a", SECRET],
                      ["--api-kye", "a", SECRET], [f"--api-key:{SECRET}"], [f"--api-key{SECRET}"]):
            status, said = ended(*flags)
            self.assertEqual(status, 2, said)
            self.assertIn("unknown", said)
            self.assertNotIn(SECRET, said)

    def test_an_empty_value_is_refused_and_never_means_an_open_door(self):
        for flag in ("--api-key", "--api-keys", "--secret-file", "--cors-origin",
                     "--allowed-hosts", "--ssl-certfile", "--ssl-keyfile", "--host"):
            status, said = ended(flag, "")
            self.assertEqual(status, 2, flag)
            self.assertIn(f"{flag}: is empty", said)
            if flag == "--host":
                continue
            name = "PAGODA_" + flag[2:].upper().replace("-", "_")
            status, said = ended(environment={name: ""})
            self.assertEqual(status, 1, name)
            self.assertIn(f"{name}: is empty", said)
        for key in ("a b", "a\n", "\u00e9", "k" * 513):
            status, said = ended("--api-key", key)
            self.assertEqual(status, 1)
            self.assertIn("--api-key: a key has 1 to 512 visible ASCII characters", said)
            self.assertNotIn(key, said)

    def test_a_flag_stands_above_an_empty_variable(self):
        os.environ["PAGODA_API_KEY"] = ""
        self.addCleanup(os.environ.pop, "PAGODA_API_KEY")
        server = self.start("--api-key", "mine", "--secret-file", self.folder.path("secret"))
        self.assertEqual(server.get("/v1/models")[0], 401)
        self.assertEqual(server.get("/v1/models", bearer("mine"))[0], 200)

    def test_a_report_does_not_show_the_key_it_asked_with(self):
        server = self.start("--api-key", SECRET, "--secret-file", self.folder.path("secret"))
        for flags in (["--api-key", SECRET], [f"--api-key={SECRET}", "--json"]):
            done = subprocess.run(
                [served.BINARY, "bench", "serve", "--url", server.url, "-n", "2", "--input-tokens",
                 "8", "--output-tokens", "2", *flags], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("--api-key", done.stdout)
            self.assertNotIn(SECRET, done.stdout + done.stderr)

    def test_an_events_port_out_of_range_is_refused(self):
        for port in ("71093", "65536", "-1", "5557x", ""):
            config = {"enable_kv_cache_events": True, "endpoint": f"tcp://*:{port}"}
            status, said = ended("--kv-events-config", json.dumps(config))
            self.assertEqual(status, 1, port)
            self.assertIn("--kv-events-config: endpoint: is", said)

    def test_a_name_that_is_none_is_refused(self):
        for name in ("a b", "http://a", "[::1", "a:b"):
            status, said = ended("--allowed-hosts", name)
            self.assertIn(status, (1, 2), name)
            self.assertIn("--allowed-hosts", said)


class Hosts(Doors):
    def status(self, server, host, path="/cache/map", **headers):
        reply, text = server.request("GET", path, None, {"Host": host, **headers})
        if reply.status == 403:
            self.assertIn("--allowed-hosts ", text)
        return reply.status

    def test_replies_name_the_flags_that_would_help(self):
        server = self.start("--retain-budget", "0")
        status, reply = server.get("/cache/tree")
        self.assertEqual(status, 404)
        self.assertIn("needs --kv-events-config", reply["error"]["message"])
        status, reply = server.post("/v1/completions", {**BODY, "retain": {"seconds": 5}})
        self.assertEqual(status, 200)
        self.assertFalse(reply["retain"]["granted"])
        self.assertIn("--retain-budget", reply["retain"]["reason"])

    def test_without_keys_only_names_of_ours_are_answered(self):
        server = self.start()
        for host in ("127.0.0.1", f"127.0.0.1:{server.port}", "[::1]:8000", "localhost:1"):
            self.assertEqual(self.status(server, host), 200, host)
        for path in ("/cache/map", "/v1/models", "/health", "/", "/server_info", "/nowhere"):
            self.assertEqual(self.status(server, "evil.example:8000", path), 403, path)
        self.assertEqual(
            self.status(server, "evil.example", Origin="http://evil.example"), 403)
        absolute = b"GET http://evil.example/cache/map HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        self.assertIn(b"HTTP/1.1 403 ", server.raw(absolute, half_close=True))
        self.assertIn(b"HTTP/1.0 200 ", server.raw(b"GET /health HTTP/1.0\r\n\r\n"))

    def test_the_body_of_a_request_for_another_is_not_waited_for(self):
        server = self.start()
        head = (b"POST /v1/completions HTTP/1.1\r\nHost: evil.example\r\n"
                b"Content-Type: application/json\r\nContent-Length: 30000000\r\n\r\n{")
        begin = time.monotonic()
        self.assertIn(b"HTTP/1.1 403 ", server.raw(head))
        self.assertLess(time.monotonic() - begin, 10)

    def test_names_that_are_given_are_ours(self):
        server = self.start("--allowed-hosts", "gpu1,Chat.Example")
        for host in ("gpu1:8000", "chat.example", "CHAT.example.", "127.0.0.1"):
            self.assertEqual(self.status(server, host), 200, host)
        own_page = {"Origin": "https://chat.example"}
        self.assertEqual(self.status(server, "chat.example", **own_page), 200)
        self.assertEqual(self.status(server, "evil.example"), 403)
        self.assertEqual(self.status(self.start("--allowed-hosts", "*"), "evil.example"), 200)

    def test_with_keys_names_are_checked_where_some_are_given(self):
        flags = self.folder.key_flags()
        for more, expected in ([], 200), (["--allowed-hosts", "gpu1"], 403):
            with served.Served(served.STORIES, *flags, *more) as server:
                server.headers = bearer("ops-key")
                self.assertEqual(self.status(server, "evil.example"), expected)
                self.assertEqual(self.status(server, "gpu1"), 200)


class Http(Doors):
    def replies(self, raw):
        """Status and headers of each, for replies of known length."""
        found = []
        while raw:
            head, _, rest = raw.partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines[1:])
            found.append((int(lines[0].split()[1]), headers))
            raw = rest[int(headers.get("Content-Length", 0)):]
        return found

    def test_refusals_say_what_to_do_instead(self):
        server = self.start()
        message = server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]})[1]["error"]["message"]
        self.assertIn("/v1/completions, or start the server with --chat-template FILE", message)
        for path, meant in (("/completion", "; it is /v1/completions here"), ("/props", "; it is /server_info here"),
                            ("/generate", "; it is /v1/completions here"), ("/api/embed", "; it is /v1/embeddings here"),
                            ("/v1/v1/models", "; it is /v1/models here"), ("/chat/completions/", "; it is /v1/chat/completions here"),
                            ("/api/pull", "pagoda pull NAME does"), ("/nothing/like/it", "there is no such path")):
            status, reply = server.post(path, {})
            self.assertEqual(status, 404)
            told = reply["error"] if path.startswith("/api/") else reply["error"]["message"]
            self.assertTrue(told.endswith(meant), told)

    def test_every_reply_has_an_id(self):
        server = self.start("--request-timeout", "1", "--max-body-bytes", "1KiB",
                            "--max-connections-per-client", "8")
        at_rest = server.descriptors()
        line, host = b"GET /health HTTP/1.1\r\n", b"Host: localhost\r\n"
        mine = b"X-Request-Id: mine\r\n"
        post = b"POST /tokenize HTTP/1.1\r\n" + host + b"Content-Type: application/json\r\n"
        cases = {
            200: [line + host + mine + b"\r\n"],
            400: [b"nonsense\r\n\r\n", line + b"\r\n", post + mine + b"Content-Length: 5\r\n\r\n{",
                  post + b"Content-Length: 1\r\n\r\n{"],
            403: [line + b"Host: evil.example\r\n" + mine + b"\r\n"],
            404: [b"GET /nowhere HTTP/1.1\r\n" + host + b"\r\n"],
            405: [b"DELETE /health HTTP/1.1\r\n" + host + b"\r\n"],
            408: [line, post + mine + b"Content-Length: 5\r\n\r\n{"],
            413: [post + mine + b"Content-Length: 5000\r\n\r\n{"],
            415: [b"POST /tokenize HTTP/1.1\r\n" + host + b"Content-Length: 1\r\n\r\n{"],
            417: [post + mine + b"Expect: a-miracle\r\nContent-Length: 5\r\n\r\n"],
            431: [line + b"X: " + b"a" * 20_000 + b"\r\n\r\n"],
        }
        for status, requests in cases.items():
            for request in requests:
                raw = server.raw(request, half_close=status != 408)
                (told, headers), = self.replies(raw)
                self.assertEqual(told, status, request[:60])
                given = mine in request and b"\r\n\r\n" in request
                self.assertRegex(headers["X-Request-Id"], "^mine$" if given else "^[0-9a-f]{16}$",
                                 request[:60])
        served.wait_until(lambda: server.descriptors() <= at_rest)
        many = [server.socket() for _ in range(8)]
        with server.socket() as late:
            with contextlib.suppress(ConnectionResetError):
                self.assertRegex(late.recv(4096), rb" 429 [^\0]*\r\nX-Request-Id: [0-9a-f]{16}\r\n")
        for one in many:
            one.close()

    def test_who_only_ends_its_side_is_told_why_a_prompt_missed(self):
        with served.Served() as server:
            for size in (10, 100_000):
                body = json.dumps({"prompt": "Once", "padding": "x" * size}).encode()
                head = f"POST /cache/explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
                request = head.encode() + b"Content-Type: application/json\r\n\r\n" + body
                for _ in range(8):
                    self.assertIn(b"HTTP/1.1 200 ", server.raw(request, half_close=True), size)

    def test_a_page_can_read_why_its_body_was_too_large(self):
        server = self.start("--max-body-bytes", "1KiB", "--cors-origin", "https://chat.example")
        reply, _ = server.request("POST", "/tokenize", "x" * 5000,
                                  {"Origin": "https://chat.example"})
        self.assertEqual(reply.status, 413)
        self.assertEqual(reply.headers["Access-Control-Allow-Origin"], "https://chat.example")

    def test_requests_are_read_as_the_standard_says(self):
        server = self.start()
        host = b"Host: localhost\r\n"
        body = json.dumps({"prompt": "Once"}).encode()
        posted = (b"POST /tokenize HTTP/1.1\r\n" + host + b"Content-Type: application/json\r\n"
                  b"Content-Length: " + str(len(body)).encode() + b"\r\n")
        again = re.search(rb"Content-Length: \d+\r\n", posted).group(0)
        last = b"GET /health HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n"
        requests = {
            "empty lines before": b"\r\n\r\n" + posted + b"\r\n" + body + b"\r\n",
            "a URL": posted.replace(b"/tokenize", b"http://localhost:1/tokenize") + b"\r\n" + body,
            "a URL stands above Host": posted.replace(b"/tokenize", b"http://[::1]/tokenize", 1)
                                             .replace(host, b"Host: evil.example\r\n", 1)
                                       + b"\r\n" + body,
            "lengths that agree": posted + again + b"\r\n" + body,
            "a list of them": posted.replace(b"\r\nContent-Length: ", b"\r\nContent-Length: %d, "
                                             % len(body)) + b"\r\n" + body,
        }
        for name, request in requests.items():
            answer = server.raw(request + last)
            self.assertEqual([status for status, _ in self.replies(answer)], [200, 200], name)

    def test_nothing_is_said_to_who_sends_only_empty_lines(self):
        server = self.start("--request-timeout", "0.5")
        self.assertEqual(server.raw(b"\r\n\r\n", half_close=True), b"")
        self.assertEqual(server.raw(b"\r\n\r\n"), b"")

    def test_only_who_can_understand_it_is_asked_to_continue(self):
        server = self.start()
        body = json.dumps({"prompt": "Once"}).encode()

        def ask(version, expectation):
            """What comes before the body is sent, within a second, and what comes after it."""
            with server.socket() as raw:
                raw.sendall(
                    b"POST /tokenize HTTP/" + version + b"\r\nHost: localhost\r\nConnection: close\r\n"
                    b"Content-Type: application/json\r\nExpect: " + expectation +
                    b"\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n")
                raw.settimeout(1)
                try:
                    before = raw.recv(65536)
                except TimeoutError:
                    before = b""
                raw.settimeout(30)
                raw.sendall(body)
                return before, raw.recv(65536)

        before, after = ask(b"1.1", b"100-Continue")
        self.assertEqual(before, b"HTTP/1.1 100 Continue\r\n\r\n")
        self.assertTrue(after.startswith(b"HTTP/1.1 200 "))
        before, after = ask(b"1.0", b"100-continue")
        self.assertEqual(before, b"")
        self.assertTrue(after.startswith(b"HTTP/1.0 200 "))
        before, _ = ask(b"1.1", b"a-miracle")
        self.assertTrue(before.startswith(b"HTTP/1.1 417 "))

    def test_a_model_is_found_by_its_id(self):
        server = self.start("--served-model-name", "org/tiny model", "--served-model-name", "b")
        for id in ("org/tiny%20model", "org%2Ftiny%20model", "b"):
            status, model = server.get(f"/v1/models/{id}")
            self.assertEqual(status, 200, id)
            self.assertEqual(model["object"], "model")
            self.assertIn(model, server.get("/v1/models")[1]["data"])
        self.assertEqual(server.get("/v1/models/org")[0], 404)

    def test_errors_name_no_path_of_the_server(self):
        path = self.folder.write("refusing.jinja", "{{ raise_exception('not so') }}")
        server = self.start("--chat-template", path)
        status, reply = server.post("/v1/chat/completions",
                                    {"messages": [{"role": "user", "content": "Hi"}]})
        self.assertEqual(status, 400)
        self.assertIn("not so", reply["error"]["message"])
        self.assertNotIn(self.folder.folder.name, reply["error"]["message"])


class Tls(Doors):
    def agreed(self, server, suites, version=ssl.TLSVersion.TLSv1_2):
        """The suite that a client with only these gets, or none."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python: old versions are deprecated
            context.minimum_version = context.maximum_version = version
        context.set_ciphers(f"{suites}:@SECLEVEL=0")
        try:
            with context.wrap_socket(server.socket()) as wire:
                return wire.cipher()[0]
        except (ssl.SSLError, ConnectionResetError):
            return None

    def test_old_suites_and_versions_are_not_agreed_on(self):
        for kind in ("rsa", "ec"):
            name = {"rsa": "RSA", "ec": "ECDSA"}[kind]
            with served.Served(served.STORIES, *self.folder.certificate_flags(kind)) as server:
                good = [f"ECDHE-{name}-{cipher}" for cipher in
                        ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305")]
                for suite in good:
                    self.assertEqual(self.agreed(server, suite), suite)
                for suite in ("AES128-SHA", "AES256-SHA256", "AES128-GCM-SHA256",
                              "AES256-GCM-SHA384", f"ECDHE-{name}-AES128-SHA",
                              f"ECDHE-{name}-AES256-SHA384", "kRSA"):
                    self.assertIsNone(self.agreed(server, suite), (kind, suite))
                for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
                    self.assertIsNone(self.agreed(server, "ALL", version))
                newest = self.agreed(server, "ALL", ssl.TLSVersion.TLSv1_3)
                self.assertTrue(newest.startswith("TLS_"), newest)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
