#!/usr/bin/env python3
"""What a tenant that floods the server costs another: the time to its first token.

    bench/noisy_neighbour.py                          # the default model
    bench/noisy_neighbour.py --model FILE --questions 40

One tenant keeps `--flood` requests with long prompts open, each new to the cache. Another asks, one
after the other, questions of its own, each new to the cache too. Printed is the other's time to its
first token, p50 and p95, alone and beside the flood, and how many times as long it is.
"""

import argparse
import http.client
import json
import pathlib
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import served_process as served  # noqa: E402

KEYS = "tenant noisy\nkey noisy-key noisy\ntenant quiet weight={weight}\nkey quiet-key quiet\n"
WORDS = "once upon a time there was a little girl who loved to play outside with her dog".split()


def prompt(words, number):
    """So many words that no other prompt begins with."""
    return f"{number} " + " ".join(WORDS[(number * 7 + i) % len(WORDS)] for i in range(words))


def open_stream(server, key, body):
    connection = server.connect(timeout=600)
    connection.request("POST", "/v1/completions", json.dumps({**body, "stream": True}),
                       {"Content-Type": "application/json", "Authorization": f"Bearer {key}"})
    return connection


def first_token_s(server, number, words):
    begin = time.monotonic()
    connection = open_stream(server, "quiet-key", {"prompt": prompt(words, number), "max_tokens": 2,
                                                   "ignore_eos": True})
    reply = connection.getresponse()
    assert reply.status == 200, reply.read()
    while not (line := reply.readline()).startswith(b"data: {"):
        assert line in (b": keep-alive\n", b"\n"), line
    seconds = time.monotonic() - begin
    reply.read()
    connection.close()
    return seconds


def flood(server, stop, words, first):
    number = first
    while not stop.is_set():
        connection = open_stream(server, "noisy-key", {"prompt": prompt(words, number),
                                                       "max_tokens": 4, "ignore_eos": True})
        try:
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            return
        connection.close()
        number += 1


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default=served.DEFAULT_MODEL)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--question-words", type=int, default=300)
    parser.add_argument("--flood", type=int, default=8, help="requests at once")
    parser.add_argument("--flood-words", type=int, default=1200)
    parser.add_argument("--weight", type=float, default=1, help="of the quiet tenant")
    parser.add_argument("--flag", action="append", default=[], help="of the server, as --flag=--x=1")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        keys = pathlib.Path(folder) / "keys"
        keys.write_text(KEYS.format(weight=asked.weight))
        flags = ["--api-keys", str(keys), "--secret-file", str(pathlib.Path(folder) / "secret"),
                 *asked.flag]
        with served.Served(asked.model, *flags, memory="512MiB") as server:
            first_token_s(server, 1, asked.question_words)
            alone = [first_token_s(server, 1000 + i, asked.question_words)
                     for i in range(asked.questions)]
            stop = threading.Event()
            noise = [threading.Thread(target=flood, args=(server, stop, asked.flood_words,
                                                          1_000_000 * (i + 1)))
                     for i in range(asked.flood)]
            for thread in noise:
                thread.start()
            time.sleep(1)
            beside = [first_token_s(server, 5000 + i, asked.question_words)
                      for i in range(asked.questions)]
            stop.set()
            server.process.kill()
            for thread in noise:
                thread.join()
    for name, values in (("alone", alone), ("beside the flood", beside)):
        print(f"{name:18} p50 {1e3 * percentile(values, 0.5):8.1f} ms   "
              f"p95 {1e3 * percentile(values, 0.95):8.1f} ms")
    print(f"p95 is {percentile(beside, 0.95) / percentile(alone, 0.95):.2f} times as long")


if __name__ == "__main__":
    main()
