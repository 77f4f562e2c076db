"""Prompts that one server computes and another fetches from its cache, without a store between them."""

import concurrent.futures
import http.client
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

import served
from disaggregation_test import FIRST_HALF, PROMPT, WHOLE, Apart, answer, complete, tokens_from, transfers
from router_process import CHAT, Router, chat, free_port, prefill_apart

LOCAL = "127.0.0.1"


def metric(server, name):
    found = re.search(rf"^{name}(?:{{.*}})? (\S+)$", server.request("GET", "/metrics")[1], re.M)
    return float(found.group(1))


class Relay:
    """Passes bytes to a port, and ends a connection once so many have come back."""

    def __init__(self, port, cut_at):
        self.target, self.cut_at, self.passed = port, cut_at, 0
        self.listener = socket.create_server((LOCAL, 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                client = self.listener.accept()[0]
                server = socket.create_connection((LOCAL, self.target))
            except OSError:
                return
            threading.Thread(target=self.forward, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self.forward, args=(server, client, True), daemon=True).start()

    def forward(self, source, target, counts):
        try:
            while data := source.recv(4096):
                if counts:
                    self.passed += len(data)
                    if self.passed > self.cut_at:
                        break
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def stop(self):
        self.listener.close()


class TlsServed(served.Served):
    """A server behind https, whoever signed its certificate."""

    def connect(self, timeout=60):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return http.client.HTTPSConnection(LOCAL, self.port, timeout=timeout, context=context)


class Peers(Apart):
    def setUp(self):
        super().setUp()
        self.key = self.path("key", b"k" * 32)

    def serving(self, *flags, **options):
        """A server whose pages others may fetch, and the port."""
        port = free_port()
        server = self.start("--kv-store-key", self.key, "--kv-peer-listen", f"{LOCAL}:{port}", *flags, **options)
        return server, port

    def fetching(self, *flags, **options):
        return self.start("--kv-store-key", self.key, "--kv-peer-allow", "127.0.0.0/8,localhost", *flags, **options)

    def alone(self, prompt=PROMPT, **options):
        return answer(complete(self.start(**options), prompt=prompt)[1])

    def hand_over(self, server, headers=None, **fields):
        status, reply = complete(server, FIRST_HALF, headers, **fields)
        self.assertEqual(status, 200, reply)
        return reply["kv_transfer_params"]

    def certificate(self):
        certificate, key = self.path("certificate.pem"), self.path("certificate_key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-days", "2", "-subj", "/CN=pagoda", "-addext", f"subjectAltName=IP:{LOCAL}",
                        "-keyout", key, "-out", certificate], check=True, capture_output=True)
        return certificate, key

    def assert_computed(self, decode, params, expected, headers=None, **fields):
        status, reply = complete(decode, params, headers, **fields)
        self.assertEqual(status, 200, reply)
        self.assertEqual(answer(reply), expected)
        self.assertEqual(tokens_from(reply, "peer"), 0)


class Contract(Peers):
    """kv_transfer_params, as vLLM's routers carry them."""

    def test_the_second_half_fetches_from_the_first(self):
        expected = self.alone()
        (prefill, port), decode = self.serving(), self.fetching()
        self.assertIn(f"served to other servers at {LOCAL}:{port}", prefill.greeting)
        params = self.hand_over(prefill)
        self.assertEqual((params["remote_host"], params["remote_port"]), (LOCAL, port))
        self.assertEqual((params["do_remote_prefill"], params["remote_num_tokens"]), (True, len(PROMPT) // 16 * 16))
        status, reply = complete(decode, params)
        self.assertEqual(status, 200, reply)
        self.assertEqual(answer(reply), expected)
        self.assertEqual(tokens_from(reply, "peer"), WHOLE)
        self.assertEqual(transfers(decode, "taken_over"), 1)
        self.assertEqual(metric(prefill, "pagoda:kv_peer_pages_sent_total"), WHOLE // 16)
        self.assertEqual(metric(prefill, "pagoda:kv_peer_connections"), 1)

    def test_over_tls_as_well(self):
        expected = self.alone()
        certificate, key = self.certificate()
        port = free_port()
        prefill = TlsServed(served.STORIES, "--kv-store-key", self.key, "--kv-peer-listen", f"{LOCAL}:{port}",
                            "--kv-peer-tls", "--ssl-certfile", certificate, "--ssl-keyfile", key)
        self.addCleanup(prefill.stop)
        decode = self.fetching("--kv-peer-tls", "--kv-peer-ca-file", certificate)
        untrusting = self.fetching("--kv-peer-tls")
        params = self.hand_over(prefill)
        self.assert_computed(untrusting, params, expected)
        status, reply = complete(decode, params)
        self.assertEqual((status, answer(reply)), (200, expected))
        self.assertEqual(tokens_from(reply, "peer"), WHOLE)

    def test_a_peer_that_dies_on_the_way_costs_time(self):
        expected = self.alone()
        prefill, port = self.serving()
        for cut_at in (60, 150, 20_000):
            relay = Relay(port, cut_at)
            self.addCleanup(relay.stop)
            params = {**self.hand_over(prefill), "remote_port": relay.port}
            decode = self.fetching()
            status, reply = complete(decode, params)
            self.assertEqual((status, answer(reply)), (200, expected), cut_at)
            self.assertLess(tokens_from(reply, "peer"), WHOLE)
            self.assertGreater(relay.passed, cut_at)
        params = self.hand_over(prefill)
        prefill.signal(signal.SIGKILL)
        prefill.wait()
        self.assert_computed(self.fetching(), params, expected)

    def test_another_kv_dtype_or_model_is_never_read(self):
        prefill, _ = self.serving("--kv-cache-dtype", "int8")
        params = self.hand_over(prefill)
        self.assertGreater(params["remote_num_tokens"], 0)
        decode = self.fetching()
        self.assert_computed(decode, params, self.alone())
        self.assertEqual(transfers(decode, "computed"), 1)
        self.assertEqual(metric(prefill, "pagoda:kv_peer_pages_sent_total"), 0)

    def test_a_forged_host_is_not_contacted(self):
        expected = self.alone()
        prefill, port = self.serving()
        params = self.hand_over(prefill)
        decode = self.start("--kv-store-key", self.key, "--kv-peer-allow", "10.0.0.0/8,worker-1")
        for host in (LOCAL, "localhost", "127.1", "worker-1.evil.example"):
            self.assert_computed(decode, {**params, "remote_host": host}, expected)
        self.assertEqual(transfers(decode, "refused"), 4)
        self.assertEqual(decode.stderr().count("a server that it may not name"), 1)
        self.assertEqual(metric(prefill, "pagoda:kv_peer_connections"), 0)
        self.assertEqual(metric(prefill, "pagoda:kv_peer_pages_sent_total"), 0)
        # Without any of these flags no request leads anywhere.
        self.assert_computed(self.start(), params, expected)

    def test_the_wrong_key_is_refused(self):
        prefill, _ = self.serving()
        params = self.hand_over(prefill)
        decode = self.start("--kv-store-key", self.path("other", b"o" * 32), "--kv-peer-allow", "127.0.0.1")
        self.assert_computed(decode, params, self.alone())
        self.assertIn("--kv-store-key", decode.stderr())
        self.assertGreaterEqual(metric(prefill, "pagoda:kv_peer_refused_total"), 1)

    def test_without_a_key_nothing_starts(self):
        for flags in (["--kv-peer-listen", f"{LOCAL}:{free_port()}"], ["--kv-peer", f"{LOCAL}:1"]):
            ended = subprocess.run([served.BINARY, "serve", served.STORIES, "--port", "0", *flags],
                                   capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(ended.returncode, 1)
            self.assertIn("--kv-store-key", ended.stderr)

    def test_tenants_of_another_secret_find_nothing(self):
        keys = self.path("keys", b"tenant one\nkey sk-one-0123456789 one\n")
        secrets = [self.path("secret1", b"s" * 32), self.path("secret2", b"t" * 32)]
        flags = ["--api-keys", keys, "--secret-file"]
        prefill, _ = self.serving(*flags, secrets[0])
        headers = {"Authorization": "Bearer sk-one-0123456789"}
        alike, other = self.fetching(*flags, secrets[0]), self.fetching(*flags, secrets[1])
        params = self.hand_over(prefill, headers)
        expected = answer(complete(self.start(*flags, secrets[0]), None, headers)[1])
        self.assert_computed(other, params, expected, headers)
        served.wait_until(lambda: "another secret" in other.stderr())
        status, reply = complete(alike, self.hand_over(prefill, headers), headers)
        self.assertEqual((status, answer(reply)), (200, expected))
        self.assertEqual(tokens_from(reply, "peer"), WHOLE)


class OtherWays(Peers):
    def test_a_peer_that_is_always_asked(self):
        expected = self.alone()
        prefill, port = self.serving()
        complete(prefill)
        decode = self.start("--kv-store-key", self.key, "--kv-peer", f"{LOCAL}:{port}")
        self.assertIn(f"KV of the server at {LOCAL}:{port} (connected)", decode.greeting)
        status, reply = complete(decode)
        self.assertEqual((status, answer(reply)), (200, expected))
        self.assertEqual(tokens_from(reply, "peer"), WHOLE)
        prefill.signal(signal.SIGKILL)
        other = [token + 1 for token in PROMPT]
        self.assertEqual(answer(complete(decode, prompt=other)[1]), self.alone(other))

    def test_a_header_names_the_server(self):
        expected = self.alone()
        (first, port), second = self.serving(), self.fetching()
        complete(first)
        header = {"x-kv-cache-source-host-port": f"{LOCAL}:{port}"}
        status, reply = complete(second, headers=header)
        self.assertEqual((status, answer(reply)), (200, expected))
        self.assertEqual(tokens_from(reply, "peer"), WHOLE)
        for wrong in ("x", ":1", f"{LOCAL}:0", f"{LOCAL}:70000", "::1:5"):
            status, reply = complete(second, headers={"x-kv-cache-source-host-port": wrong})
            self.assertEqual(status, 400, wrong)
            self.assertIn("x-kv-cache-source-host-port", reply["error"]["message"])
        other = [token + 1 for token in PROMPT]
        expected = self.alone(other)
        self.assert_computed(second, None, expected, {"x-kv-cache-source-host-port": "192.0.2.1:80"}, prompt=other)
        self.assertEqual(transfers(second, "refused"), 1)

    def test_bytes_of_strangers_change_nothing(self):
        prefill, port = self.serving()
        for data in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 5000, b"\0" * 10, os.urandom(3000)):
            with socket.create_connection((LOCAL, port)) as stranger:
                stranger.settimeout(20)
                stranger.sendall(data)
                heard = b""
                try:
                    while piece := stranger.recv(4096):
                        heard += piece
                except ConnectionResetError:
                    pass
                self.assertLessEqual(len(heard), 45)
        status, reply = complete(self.fetching(), self.hand_over(prefill))
        self.assertEqual((status, tokens_from(reply, "peer")), (200, WHOLE))

    def test_leases_leave_room_for_requests(self):
        prefill, _ = self.serving("--kv-peer-lease", "600", "--kv-peer-lease-share", "0.05", memory="8MiB")
        params = self.hand_over(prefill)
        blocks = prefill.snapshot()["now"]["blocks_all"]
        self.assertLessEqual(metric(prefill, "pagoda:kv_peer_pages_leased"), 0.05 * blocks)
        self.assertLess(params["remote_num_tokens"], WHOLE + 16)


class Bootstrap(Peers):
    """The same request reaches both servers at once, as SGLang's router sends it."""

    def pair(self, **options):
        prefill, port = self.serving("--disaggregation-mode", "prefill", **options)
        return prefill, port, self.fetching("--disaggregation-mode", "decode", **options)

    def test_the_answer_waits_for_what_the_other_computes(self):
        expected = self.alone()
        prefill, port, decode = self.pair()
        self.assertEqual([s.snapshot()["disaggregation_mode"] for s in (prefill, decode)], ["prefill", "decode"])
        fields = {"bootstrap_host": LOCAL, "bootstrap_port": port, "bootstrap_room": 2**62 + 1}
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            second = pool.submit(complete, decode, **fields)
            time.sleep(0.5)
            self.assertFalse(second.done())
            status, first = complete(prefill, **fields)
            self.assertEqual((status, first["usage"]["completion_tokens"]), (200, 1))
            status, reply = second.result()
        self.assertEqual((status, answer(reply)), (200, expected))
        self.assertEqual(tokens_from(reply, "peer"), WHOLE)
        self.assertEqual(transfers(decode, "taken_over"), 1)

    def test_batches_name_a_room_for_each(self):
        prompts = [PROMPT, [token + 1 for token in PROMPT]]
        expected = [self.alone(prompt)[0] for prompt in prompts]
        prefill, port, decode = self.pair()
        fields = {"bootstrap_host": [LOCAL] * 2, "bootstrap_port": [port] * 2, "bootstrap_room": [1, 2],
                  "prompt": prompts}
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            replies = list(pool.map(lambda server: complete(server, **fields), (prefill, decode)))
        self.assertEqual([status for status, _ in replies], [200, 200])
        self.assertEqual([choice["text"] for choice in replies[1][1]["choices"]], expected)

    def test_a_prompt_that_never_comes_is_computed(self):
        expected = self.alone()
        _, port = self.serving("--disaggregation-mode", "prefill")
        decode = self.fetching("--disaggregation-mode", "decode", "--kv-peer-wait", "0.5")
        begun = time.monotonic()
        self.assert_computed(decode, None, expected, bootstrap_host=LOCAL, bootstrap_port=port, bootstrap_room=3)
        self.assertLess(time.monotonic() - begun, 10)

    def test_other_servers_ignore_the_fields_and_wrong_types_are_refused(self):
        server = self.start()
        status, reply = complete(server, bootstrap_host=LOCAL, bootstrap_port=None, bootstrap_room=1)
        self.assertEqual((status, reply["usage"]["completion_tokens"]), (200, 12))
        for fields in ({"bootstrap_host": 5}, {"bootstrap_host": "h", "bootstrap_port": "x"},
                       {"bootstrap_host": "h", "bootstrap_port": 0}, {"bootstrap_room": -1},
                       {"bootstrap_host": ["h", 5]}, {"bootstrap_host": "h" * 256},
                       {"bootstrap_host": ["h"] * 5000}):
            status, reply = complete(server, **fields)
            self.assertEqual(status, 400, fields)
            self.assertIn("bootstrap_", reply["error"]["message"])

    def test_sglang_router(self):
        prefill, port, decode = self.pair(kind=served.ChatServed)
        alone = self.start(kind=served.ChatServed)
        with Router("sglang", prefill_apart("sglang", prefill, decode, port)) as router:
            for question in ("a bird and a tree", "a dog and a ball"):
                messages = [{"role": "user", "content": f"Tell me about {question}, " * 6}]
                expected = alone.post(CHAT, chat(messages))[1]["choices"][0]["message"]["content"]
                status, reply = router.ask(messages)
                self.assertEqual(status, 200, reply)
                self.assertEqual(reply["choices"][0]["message"]["content"], expected)
        self.assertEqual(transfers(decode, "taken_over"), 2)
        self.assertEqual(transfers(prefill, "handed_over"), 2)

    def test_vllm_router_finds_the_peer_by_itself(self):
        prefill, _ = self.serving(kind=served.ChatServed)
        decode, alone = self.fetching(kind=served.ChatServed), self.start(kind=served.ChatServed)
        messages = [{"role": "user", "content": "Tell me about a bird and a tree, " * 6}]
        expected = alone.post(CHAT, chat(messages))[1]["choices"][0]["message"]["content"]
        with Router("vllm", prefill_apart("vllm", prefill, decode)) as router:
            status, reply = router.ask(messages)
            self.assertEqual(status, 200, reply)
            self.assertEqual(reply["choices"][0]["message"]["content"], expected)
        self.assertEqual(transfers(decode, "taken_over"), 1)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
