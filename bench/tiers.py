#!/usr/bin/env python3
"""What tiers are worth to who waits: three figures, with the default model.

    bench/tiers.py                    # all three
    bench/tiers.py --only restart     # restart, slow or chat

restart   the first token of a long prompt after a restart, from disk and computed, alternately
slow      the same with a disk of 5 MB/s, beside no disk at all
chat      20 users whose KV is five times the cache: first tokens and throughput, tier by tier

Everything runs on this machine, the clients too. `pagoda bench tiers` measures the stores alone.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import served_process as served  # noqa: E402

QUIET = ["--log-format", "none"]


def prompt(tokens, seed):
    return [300 + (seed * 7919 + i * i * 31 + i) % 200 for i in range(tokens)]


def first_token(server, ids):
    """Seconds to the answer's only token, and the tokens that came from each tier."""
    begin = time.monotonic()
    status, reply = server.post("/v1/completions", {"prompt": ids, "max_tokens": 1, "temperature": 0})
    seconds = time.monotonic() - begin
    assert status == 200, reply
    return seconds, reply["usage"]["prompt_tokens_details"], reply["choices"][0]["text"]


def start(model, folder, *flags):
    disk = ["--kv-disk", folder, "--kv-disk-size", "2GiB"] if folder else ["--kv-disk", "off"]
    return served.Served(model, *disk, *QUIET, *flags, memory="512MiB")


def restart(arguments, rounds=None, flags=()):
    """Ratios of loading to computing, each of one prompt in one pair of processes."""
    ratios = []
    for turn in range(rounds or arguments.rounds):
        folder = tempfile.mkdtemp(prefix="pagoda_kv_")
        try:
            ids = prompt(arguments.tokens, turn)
            with start(arguments.model, folder) as server:
                computed, _, text = first_token(server, ids)
                # The machine's speed at this prompt's end is what the next process starts with.
            with start(arguments.model, folder, *flags) as server:
                first_token(server, prompt(64, 99 + turn))
                loaded, details, again = first_token(server, ids)
            assert text == again
        finally:
            shutil.rmtree(folder)
        ratios.append(loaded / computed)
        print(f"  {computed:8.3f} s computed, {loaded:8.3f} s after a restart: {ratios[-1]:.3f}; "
              f"{details['cached_tokens_by_tier']}", flush=True)
    return ratios


def slow(arguments):
    """A disk of 5 MB/s against none, alternately: every prompt is on the disk."""
    ratios = []
    folder = tempfile.mkdtemp(prefix="pagoda_kv_")
    flags = ["--kv-disk-bytes-per-second", "5000000"]
    try:
        prompts = [prompt(arguments.tokens // 2, 1000 + i) for i in range(arguments.rounds)]
        with start(arguments.model, folder) as server:
            for ids in prompts:
                first_token(server, ids)
        with start(arguments.model, folder, *flags) as with_disk, start(arguments.model, "") as without:
            for ids in prompts:
                on, details, text = first_token(with_disk, ids)
                off, _, again = first_token(without, ids)
                assert text == again
                ratios.append(on / off)
                print(f"  {off:8.3f} s without a disk, {on:8.3f} s with a slow one: {ratios[-1]:.3f}; "
                      f"{details['cached_tokens_by_tier']}", flush=True)
    finally:
        shutil.rmtree(folder)
    return ratios


def chat(arguments):
    """20 users, 4 turns of 96 tokens and answers of 32: about 500 tokens of KV each at the end."""
    users, turns, asked, answered = 20, 4, 96, 32
    tokens = users * turns * (asked + answered)
    memory = str(tokens // 5 * 23040 * arguments.kv_scale)
    folder = tempfile.mkdtemp(prefix="pagoda_kv_")
    tiers = {"none": ["--kv-disk", "off"],
             "disk": ["--kv-disk", folder, "--kv-disk-size", "2GiB"],
             "host": ["--kv-disk", "off", "--kv-host-size", "1GiB"],
             "redis": ["--kv-disk", "off", "--kv-remote", "redis://127.0.0.1:7399"]}
    redis = None
    if "redis" in arguments.tiers:
        redis = subprocess.Popen(["redis-server", "--port", "7399", "--bind", "127.0.0.1", "--save", ""],
                                 stdout=subprocess.DEVNULL)
        time.sleep(1)
    try:
        for name in arguments.tiers:
            with served.Served(arguments.model, *tiers[name], *QUIET, "--max-model-len", "1024",
                               memory=memory) as server:
                words = [served.BINARY, "bench", "serve", "--url", server.url, "--json",
                         "--workload", "conversation", "-n", str(users), "--turns", str(turns),
                         "--input-tokens", str(asked), "--output-tokens", str(answered),
                         "--think", "1", "--rate", "2"]
                done = subprocess.run(words, capture_output=True, text=True, check=True)
                report = json.loads(done.stdout)
                rows = {row["time"]: row for row in report["rows"]}
                first = rows["first token, from when sent"]
                print(f"  {name:6} {report['seconds']:7.1f} s, {report['requests_per_s']:.3f} requests/s, "
                      f"first token p50 {first['p50_ms'] / 1000:.2f} p95 {first['p95_ms'] / 1000:.2f} s, "
                      f"{report['cached_tokens']} of {report['prompt_tokens']} prompt tokens cached, "
                      f"{report['errors']} errors", flush=True)
    finally:
        if redis:
            redis.terminate()
            redis.wait()
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", choices=["restart", "slow", "chat"])
    parser.add_argument("--model", default=served.DEFAULT_MODEL)
    parser.add_argument("--tokens", type=int, default=4000, help="of a prompt (default 4000)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tiers", type=lambda text: text.split(","), default=["none", "disk", "host", "redis"],
                        help="of chat, alternately (default none,disk,host,redis)")
    parser.add_argument("--kv-scale", type=int, default=1, help="of the cache in chat")
    arguments = parser.parse_args()
    if arguments.only in (None, "restart"):
        print("restart: time to the first token, from disk over computed (aim 0.25, goal 0.1)")
        print(f"  median {statistics.median(restart(arguments)):.3f}")
    if arguments.only in (None, "slow"):
        print("slow: the same with a disk of 5 MB/s over none (aim 1.05)")
        print(f"  median {statistics.median(slow(arguments)):.3f}")
    if arguments.only in (None, "chat"):
        print("chat: 20 users, KV five times the cache")
        chat(arguments)


if __name__ == "__main__":
    main()
