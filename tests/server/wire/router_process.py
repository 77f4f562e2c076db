"""A router that people run, as a process of its own in front of servers: sglang-router or vllm-router."""

import contextlib
import http.client
import json
import socket
import subprocess
import sys
import tempfile

import served

CHAT = "/v1/chat/completions"
ROUTERS = {
    "sglang": ["-c", "from sglang_router.cli import main; main()", "launch"],
    "vllm": ["-c", "from vllm_router.launch_router import main; main()"],
}
PREFILL_APART = {"sglang": "--pd-disaggregation", "vllm": "--vllm-pd-disaggregation"}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def cache_aware(workers):
    return ["--worker-urls", *[worker.url for worker in workers], "--policy", "cache_aware",
            "--cache-threshold", "0.3", "--balance-abs-threshold", "32"]


def prefill_apart(kind, prefill, decode, bootstrap_port=None):
    """One server computes prompts, another answers."""
    bootstrap = [] if bootstrap_port is None else [str(bootstrap_port)]
    return [PREFILL_APART[kind], "--prefill", prefill.url, *bootstrap, "--decode", decode.url,
            "--policy", "round_robin"]


class Router:
    def __init__(self, kind, arguments):
        self.port = free_port()
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [sys.executable, *ROUTERS[kind], *arguments,
             "--host", "127.0.0.1", "--port", str(self.port), "--prometheus-port", str(free_port()),
             "--health-check-interval-secs", "1", "--health-success-threshold", "1",
             "--cb-timeout-duration-secs", "3", "--cb-success-threshold", "1"],
            stdout=self.log, stderr=subprocess.STDOUT)
        try:
            served.wait_until(self.is_ready, 60)
        except BaseException:
            self.stop()
            raise

    def is_ready(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.request("GET", "/health")[0] == 200
        return False

    def request(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, json.dumps(body) if body else None,
                               {"Content-Type": "application/json", **(headers or {})})
            reply = connection.getresponse()
            return reply.status, reply.read().decode()

    def ask(self, messages, **fields):
        status, text = self.request("POST", CHAT, chat(messages, **fields))
        return status, json.loads(text)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def chat(messages, **fields):
    return {"model": "stories260K", "messages": messages, "max_tokens": 8, "temperature": 0, **fields}
