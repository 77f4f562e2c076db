"""A pagoda serve of its own for a test or a benchmark: started on a free port, stopped at the end."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import tempfile
import time

# Servers share no disk tier with each other, nor with this machine's user, unless that is asked for.
os.environ.setdefault("PAGODA_KV_DISK", "off")
os.environ.setdefault("PAGODA_DEVICE", "cpu")  # whatever GPU there is

SOURCE = os.environ.setdefault("PAGODA_SOURCE_DIR", str(pathlib.Path(__file__).resolve().parent.parent))
BINARY = os.environ.setdefault("PAGODA_BINARY", os.path.join(SOURCE, "build/pagoda"))
STORIES = os.path.join(SOURCE, "tests/data/models/stories260K.gguf")
DEFAULT_MODEL = os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
    "pagoda/models/SmolLM2-135M-Instruct.Q4_1.gguf",
)


class Served:
    """A server process; `get`, `post` and `connect` talk to it with the standard library."""

    def __init__(self, model=STORIES, *flags, wait=True, port=0, memory="64MiB"):
        self.begin = time.monotonic()
        self.headers = {}  # of every request
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [BINARY, "serve", model, "--port", str(port), "--kv-cache-memory-bytes", memory, *flags],
            stdout=subprocess.PIPE,
            stderr=self.errors,
            bufsize=0,  # select sees what readline left
        )
        self.greeting = ""
        self.port = None
        if wait:
            try:
                self.wait_ready()
            except BaseException:
                self.process.kill()
                raise

    def wait_ready(self, seconds=60):
        end = time.monotonic() + seconds
        while "try: curl" not in self.greeting:
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"no greeting: {self.greeting!r} {self.stderr()!r}")
            line = self.process.stdout.readline().decode()
            if not line:
                raise RuntimeError(f"the server ended: {self.stderr()}")
            self.greeting += line
        self.ready_s = time.monotonic() - self.begin
        self.port = int(re.search(r"on https?://127\.0\.0\.1:(\d+)", self.greeting).group(1))

    def stderr(self):
        # Leaves the place where the server writes, which is the file's own, alone.
        return os.pread(self.errors.fileno(), 1 << 20, 0).decode()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def socket(self, timeout=30):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def request(self, method, path, body=None, headers=None):
        connection = self.connect()
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            headers = {"Content-Type": "application/json", **(headers or {})}
        connection.request(method, path, body, {**self.headers, **(headers or {})})
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        return reply, text

    def get(self, path, headers=None):
        reply, text = self.request("GET", path, None, headers)
        return reply.status, json.loads(text)

    def post(self, path, body, headers=None):
        reply, text = self.request("POST", path, body, headers)
        return reply.status, json.loads(text)

    def raw(self, data, half_close=False, timeout=30):
        """What the server answers to these bytes until it closes the connection."""
        with self.socket(timeout) as raw:
            with contextlib.suppress(OSError):
                raw.sendall(data)
                if half_close:
                    raw.shutdown(socket.SHUT_WR)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := raw.recv(65536):
                    answer += piece
            return answer

    def snapshot(self):
        return self.get("/server_info")[1]

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def seconds_without_a_core(self):
        """How long its threads could have run and others had the cores: the most of any thread."""
        waits = []
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{thread}/schedstat") as schedstat:
                waits.append(int(schedstat.read().split()[1]) / 1e9)
        return max(waits)

    def is_at_rest(self):
        """Nothing runs or waits, and every block is free or reusable."""
        now = self.snapshot()["now"]
        return (
            now["answers_running"] == 0
            and now["requests_waiting"] == 0
            and now["blocks_free"] + now["blocks_idle"] == now["blocks_all"]
        )

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self, seconds=30):
        return self.process.wait(seconds)

    def stop(self):
        if self.process.poll() is None:
            self.signal()
            try:
                self.wait()
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.wait()
        self.process.stdout.close()
        self.errors.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("it did not come to be")
        time.sleep(0.02)
