#!/usr/bin/env python3
"""What clients that post large bodies cost others: gaps between a stream's tokens, and probes.

    bench/large_bodies.py                     # the default model, 20 s, two clients, 30 MB
    bench/large_bodies.py --kind values --repeats 3

A stream is read alone for `--seconds`, then as long beside `--clients` that post bodies of
`--megabytes` in a loop. Printed are its gaps between two tokens (p50, p99, the longest) both times,
how many times as long the p99 is, and how long 1,000 GET /health took meanwhile. All clients are
processes of their own; they share the machine's cores with the server, whose load is printed, too.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import served_process as served  # noqa: E402

JSON = {"Content-Type": "application/json"}
PROBES = 1000


def body_of(kind, megabytes):
    size = megabytes * 1_000_000
    if kind == "spaces":
        return json.dumps({"prompt": " " * size, "max_tokens": 1}).encode()
    if kind == "words":
        return json.dumps({"prompt": "once upon a time " * (size // 17), "max_tokens": 1}).encode()
    if kind == "values":
        return json.dumps({"prompt": [[1, 2]] * (size // 8), "max_tokens": 1}).encode()
    return json.dumps({"messages": [{"role": "user", "content": "once upon a time " * 60}
                                    for _ in range(size // 1060)], "max_tokens": 1}).encode()


def post(port, body, end, replies):
    count = 0
    while time.monotonic() < end:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        try:
            connection.request("POST", "/v1/completions" if b'{"prompt' == body[:8] else
                               "/v1/chat/completions", body, JSON)
            connection.getresponse().read()
            count += 1
        except OSError:
            pass
        connection.close()
    replies.put(count)


def probe(port, seconds, results):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    times = []
    begin = time.monotonic()
    for i in range(PROBES):
        time.sleep(max(0.0, begin + seconds * i / PROBES - time.monotonic()))
        asked = time.monotonic()
        connection.request("GET", "/health")
        connection.getresponse().read()
        times.append(time.monotonic() - asked)
    results.put(times)


def gaps(port, seconds):
    """Seconds between the tokens of streams that are open for so long."""
    found = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        connection.request("POST", "/v1/completions",
                           json.dumps({"prompt": "Once upon a time", "max_tokens": 1000,
                                       "ignore_eos": True, "stream": True}), JSON)
        reply = connection.getresponse()
        last = None
        while (line := reply.readline()) and time.monotonic() < end:
            if not line.startswith(b"data: {"):
                continue
            now = time.monotonic()
            if last is not None:
                found.append(now - last)
            last = now
        connection.close()
    return found


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def told(name, values):
    print(f"{name:22} {len(values):6} p50 {1e3 * percentile(values, 0.5):8.2f} ms   "
          f"p99 {1e3 * percentile(values, 0.99):8.2f} ms   longest {1e3 * max(values):8.2f} ms")


def measure(server, body, asked):
    results, replies = multiprocessing.Queue(), multiprocessing.Queue()
    gaps(server.port, 2)
    prober = multiprocessing.Process(target=probe, args=(server.port, asked.seconds * 0.95, results))
    prober.start()
    alone = gaps(server.port, asked.seconds)
    told("health, alone", results.get())
    prober.join()
    end = time.monotonic() + asked.seconds
    posters = [multiprocessing.Process(target=post, args=(server.port, body, end, replies))
               for _ in range(asked.clients)]
    prober = multiprocessing.Process(target=probe, args=(server.port, asked.seconds * 0.95, results))
    for process in (*posters, prober):
        process.start()
    beside = gaps(server.port, asked.seconds)
    told("health, beside bodies", results.get())
    posted = sum(replies.get() for _ in posters)
    for process in (*posters, prober):
        process.join()
    told("gaps, alone", alone)
    told("gaps, beside bodies", beside)
    print(f"{posted} bodies; p99 of gaps is "
          f"{percentile(beside, 0.99) / percentile(alone, 0.99):.2f} times as long; "
          f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default=served.DEFAULT_MODEL)
    parser.add_argument("--kind", choices=("spaces", "words", "values", "chat"), default="words")
    parser.add_argument("--megabytes", type=int, default=30)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--flag", action="append", default=[], help="of the server, as --flag=--x=1")
    asked = parser.parse_args()
    body = body_of(asked.kind, asked.megabytes)
    with served.Served(asked.model, *asked.flag, memory="512MiB") as server:
        for _ in range(asked.repeats):
            measure(server, body, asked)


if __name__ == "__main__":
    main()
