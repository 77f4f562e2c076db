#!/usr/bin/env python3
"""TTFT of a server whose prompt another server has computed, over that of computing it.

Each round: a fresh prompt goes to the first server (`do_remote_decode`), then with what that replied to the
second, which fetches its pages; the second also computes a fresh prompt of the same length. Its answer is
compared with that of the first, which has the prompt in memory.

    bench/peer_ttft.py [--tokens 4000] [--rounds 3]
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import socket
import statistics
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
from served_process import DEFAULT_MODEL, Served  # noqa: E402

FIRST_HALF = {"do_remote_decode": True}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def first_token(server, prompt, params=None):
    """Seconds to the first token, and the answer's text."""
    body = {"prompt": prompt, "max_tokens": 8, "temperature": 0, "stream": True}
    if params is not None:
        body["kv_transfer_params"] = params
    connection = server.connect(600)
    text = ""
    with contextlib.closing(connection):
        begun = time.monotonic()
        seconds = None
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        for line in reply:
            if not line.startswith(b"data: {"):
                continue
            if seconds is None:
                seconds = time.monotonic() - begun
            text += json.loads(line[6:])["choices"][0]["text"]
    return seconds, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    given = parser.parse_args()
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        key = os.path.join(folder, "key")
        with open(key, "wb") as file:
            file.write(os.urandom(32))
        os.chmod(key, 0o600)
        shared = ["--kv-store-key", key, "--max-model-len", str(given.tokens + 64)]
        port = free_port()
        first = Served(given.model, *shared, "--kv-peer-listen", f"127.0.0.1:{port}", memory="1GiB")
        stack.callback(first.stop)
        second = Served(given.model, *shared, "--kv-peer-allow", "127.0.0.1", memory="1GiB")
        stack.callback(second.stop)
        rows = []
        for _ in range(given.rounds):
            prompt, other = ([draw.randrange(100, 40_000) for _ in range(given.tokens)] for _ in range(2))
            computed, _ = first_token(second, other)
            status, reply = first.post("/v1/completions", {
                "prompt": prompt, "max_tokens": 1, "kv_transfer_params": FIRST_HALF})
            assert status == 200, reply
            params = reply["kv_transfer_params"]
            fetched, text = first_token(second, prompt, params)
            assert text == first_token(first, prompt)[1], "the answers differ"
            rows.append((computed, fetched))
            print(f"computed {computed:.3f} s, fetched {fetched:.3f} s ({params['remote_num_tokens']} tokens): "
                  f"{fetched / computed:.3f}", flush=True)
        print(f"median of {given.rounds}: {statistics.median(f / c for c, f in rows):.3f}")


if __name__ == "__main__":
    main()
