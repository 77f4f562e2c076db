"""One model over several processes: answers are those of one, and a process that is killed costs
requests, never the server."""

import os
import signal
import sys
import time
import unittest

import served
from served import wait_until

RANK = os.path.join(os.path.dirname(served.BINARY), "pagoda-rank")
BODIES = [
    {"prompt": "Once upon a time there was a dog.", "max_tokens": 24, "temperature": 0, "logprobs": 3},
    {"prompt": "The sun", "max_tokens": 20, "temperature": 0.9, "seed": 7, "n": 2, "logprobs": 1},
    {"prompt": "Tom and Sue", "max_tokens": 0, "echo": True, "temperature": 0, "logprobs": 1},
]


def figures(reply):
    return [(c["text"], c["token_ids"], c["logprobs"]) for c in reply["choices"]]


def parents():
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as stat:
                found[int(name)] = int(stat.read().rpartition(")")[2].split()[1])
        except OSError:
            pass  # it has ended
    return found


def ranks_of(server):
    """The processes of a server's ranks: children of the mpirun that it started."""
    parent_of = parents()
    ranks = []
    for process, parent in parent_of.items():
        if parent_of.get(parent) == server.process.pid:
            ranks.append(process)
    return ranks


def runs(process):
    """False also of a process that has ended and that nobody has asked about."""
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def cpu_seconds(process):
    with open(f"/proc/{process}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@unittest.skipUnless(os.path.exists(RANK) or served.on_build_machine(), "the program was built without MPI")
class Ranks(unittest.TestCase):
    def serve(self, count, *flags, model=served.STORIES):
        server = served.Served(model, "--tensor-parallel-size", str(count), "--threads", "1", *flags)
        self.addCleanup(server.process.kill)
        return server

    def ask_all(self, server):
        answers = []
        for body in BODIES:
            status, reply = server.post("/v1/completions", {**body, "return_token_ids": True})
            self.assertEqual(status, 200, reply)
            answers.append(figures(reply))
        return answers

    def stop(self, server):
        server.signal()
        self.assertEqual(server.wait(), 0)

    def test_their_number_changes_no_answer_and_they_end_with_the_server(self):
        one = self.serve(1)
        expected = self.ask_all(one)
        embedding = one.post("/v1/embeddings", {"input": "A little dog"})[1]["data"]
        self.stop(one)
        for count in (2, 3):
            server = self.serve(count)
            self.assertIn(f"{count} ranks of 1 thread", server.greeting)
            self.assertIn("exchanged for a token", server.greeting)
            for _ in range(2):
                self.assertEqual(self.ask_all(server), expected)
            self.assertEqual(server.post("/v1/embeddings", {"input": "A little dog"})[1]["data"], embedding)
            page = server.request("GET", "/metrics")[1]
            sent = [line for line in page.splitlines() if line.startswith("pagoda:rank_exchanged_bytes_total")]
            self.assertGreater(float(sent[0].split()[-1]), 0)
            ranks = ranks_of(server)
            self.assertEqual(len(ranks), count)
            self.stop(server)
            wait_until(lambda: not any(map(runs, ranks)))

    def test_the_default_model_answers_as_with_one(self):
        served.require_default_model(self)
        answers = []
        for count in (1, 2, 3):
            server = self.serve(count, "-c", "512", model=served.DEFAULT_MODEL)
            status, reply = server.post(
                "/v1/completions",
                {"prompt": "The tallest pagoda", "max_tokens": 8, "temperature": 0, "logprobs": 2, "return_token_ids": True},
            )
            self.assertEqual(status, 200, reply)
            answers.append(figures(reply))
            self.stop(server)
        self.assertEqual(answers[1:], answers[:1] * 2)

    def test_a_killed_rank_ends_requests_with_503_and_the_server_says_so(self):
        for idle in (True, False):
            server = self.serve(2)
            ranks = ranks_of(server)
            if not idle:
                with server.socket() as raw:
                    body = b'{"prompt": "Once", "max_tokens": 400, "stream": true, "ignore_eos": true}'
                    raw.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                b"Content-Length: %d\r\n\r\n" % len(body) + body)
                    raw.recv(4096)
                    os.kill(ranks[1], signal.SIGKILL)
                    text = b""
                    while b"device_lost" not in text:
                        piece = raw.recv(65536)
                        self.assertTrue(piece, text)
                        text += piece
            else:
                os.kill(ranks[0], signal.SIGKILL)
            wait_until(lambda: server.get("/health")[0] == 503)
            status, reply = server.post("/v1/completions", {"prompt": "Once", "max_tokens": 4})
            self.assertEqual(status, 503)
            self.assertEqual(reply["error"]["code"], "device_lost")
            wait_until(lambda: not any(map(runs, ranks)))
            self.assertIsNone(server.process.poll())
            self.stop(server)

    def test_a_killed_server_leaves_no_rank_behind(self):
        server = self.serve(2)
        ranks = ranks_of(server)
        server.signal(signal.SIGKILL)
        server.wait()
        wait_until(lambda: not any(map(runs, ranks)))

    def test_idle_ranks_sleep(self):
        server = self.serve(2)
        self.ask_all(server)
        ranks = ranks_of(server)
        before = [cpu_seconds(rank) for rank in ranks]
        time.sleep(2)  # the span that is measured
        for rank, seconds in zip(ranks, before):
            self.assertLess(cpu_seconds(rank) - seconds, 0.2)
        self.stop(server)

    def test_what_ranks_cannot_do_is_refused_by_name(self):
        for flags, why in [
            (("--kv-host-size", "64MiB"), "tiers"),
            (("--device", "cuda"), "--device cpu"),
            (("--model-draft", served.STORIES), "draft model"),
        ]:
            server = served.Served(served.STORIES, "--tensor-parallel-size", "2", *flags, wait=False)
            self.assertEqual(server.wait(), 1, flags)
            self.assertIn(why, server.stderr())
            self.assertIn("--tensor-parallel-size 2", server.stderr())
        server = self.serve(2)
        status, reply = server.post("/v1/completions", {"prompt": "Once", "kv_policy": "h2o:64"})
        self.assertEqual(status, 400, reply)
        self.stop(server)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
