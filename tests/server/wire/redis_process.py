"""A redis-server of its own for a test: on a free port of loopback, without a file."""

import signal
import socket
import subprocess
import tempfile

import served


class RedisProcess:
    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--appendonly", "no", "--dir", self.folder.name],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        served.wait_until(self.answers)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def answers(self):
        try:
            return self.command(b"PING") == b"PONG"
        except OSError:
            return False

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def command(self, *words):
        """The reply: bytes, or a list of bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
            with connection.makefile("rb") as replies:
                return self.read_reply(replies)

    @classmethod
    def read_reply(cls, replies):
        line = replies.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b"*":
            return [cls.read_reply(replies) for _ in range(int(rest))]
        if kind == b"$":
            return replies.read(int(rest) + 2)[:-2]
        if kind == b"-":
            raise OSError(rest.decode())
        return rest

    def items(self):
        """All keys as text, with their values."""
        return [(key.decode(), self.command(b"GET", key)) for key in sorted(self.command(b"KEYS", b"*"))]
