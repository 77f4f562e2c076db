#!/usr/bin/env python3
"""What the server bears on loopback: four figures, each beside its aim.

    bench/serve_load.py                     # all four, with the story model
    bench/serve_load.py --only requests     # streams, idle, requests or overhead

streams    1,000 streams at once: errors, and how evenly they progress
idle       10,000 connections that say nothing: resident memory of the server
requests   completions of one token: how many a second
overhead   processor time of the server's threads for connections, per streamed token

The load comes from `pagoda bench serve` on the same machine: client and server share its cores.
Exit status 1 when an aim is missed.
"""

import argparse
import json
import os
import pathlib
import resource
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import served_process as served  # noqa: E402

MANY = ["--max-connections", "12000", "--max-connections-per-client", "12000", "--log-format", "none"]
WIDE = ["--max-num-seqs", "1024", "--max-num-batched-tokens", "2048"]


def bench(server, *flags):
    words = [served.BINARY, "bench", "serve", "--url", server.url, "--json", *map(str, flags)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def row(report, name):
    return next(r for r in report["rows"] if r["time"] == name)


def thread_seconds(server):
    """Processor time by the threads' names."""
    seconds = {}
    folder = pathlib.Path(f"/proc/{server.process.pid}/task")
    for task in folder.iterdir():
        name = (task / "comm").read_text().strip()
        spent = int((task / "schedstat").read_text().split()[0]) / 1e9
        seconds[name] = seconds.get(name, 0) + spent
    return seconds


def spent_since(server, before):
    now = thread_seconds(server)
    return {name: now[name] - before.get(name, 0) for name in now}


def show(name, seen, aim, good):
    print(f"{name:9} {seen}\n{'':9} aim: {aim}: {'met' if good else 'MISSED'}", flush=True)
    return good


def streams(arguments):
    with served.Served(served.STORIES, *MANY, *WIDE, memory="512MiB") as server:
        report = bench(server, "-n", arguments.streams, "--input-tokens", 16, "--output-tokens", 100)
    whole = row(report, "whole answer, from when sent")
    good = report["errors"] == 0 and report["in_flight_peak"] == arguments.streams
    seen = (f"{report['answered']} of {report['requests']} streams answered, "
            f"{report['in_flight_peak']} at once, {report['errors']} errors; "
            f"{report['output_tokens_per_s']:.0f} tokens/s; fairness of their speeds (Jain) "
            f"{report['stream_fairness']:.4f}; whole answers: p50 {whole['p50_ms'] / 1e3:.2f} s, "
            f"slowest {whole['max_ms'] / 1e3:.2f} s")
    return show("streams", seen, f"{arguments.streams} at once without an error, fairness above 0.95",
                good and report["stream_fairness"] > 0.95)


def idle(arguments):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with served.Served(served.STORIES, *MANY) as server:
        bench(server, "-n", 100, "--concurrency", 10, "--output-tokens", 8)
        before = server.resident_bytes()
        open_ones = [socket.create_connection(("127.0.0.1", server.port))
                     for _ in range(arguments.idle)]
        served.wait_until(lambda: server.descriptors() > arguments.idle)
        time.sleep(1)
        after = server.resident_bytes()
        report = bench(server, "-n", 20, "--concurrency", 2, "--output-tokens", 8)
        for one in open_ones:
            one.close()
    seen = (f"{arguments.idle} idle connections: {before / 1e6:.1f} MB resident before, "
            f"{after / 1e6:.1f} MB with them, {(after - before) / arguments.idle:.0f} bytes each; "
            f"{report['answered']} of 20 requests answered meanwhile")
    return show("idle", seen, "200 MB", after < 200e6 and report["answered"] == 20)


def requests(arguments):
    with served.Served(served.STORIES, *MANY, "--max-num-seqs", "64") as server:
        flags = ["-n", 10_000_000, "--concurrency", 64, "--input-tokens", 4, "--output-tokens", 1,
                 "--no-stream"]
        bench(server, *flags, "--duration", 1)
        before, client = thread_seconds(server), os.times()
        report = bench(server, *flags, "--duration", arguments.seconds)
        spent, after = spent_since(server, before), os.times()
    count = report["answered"]
    each = {name: f"{1e6 * seconds / count:.0f}" for name, seconds in spent.items()}
    used = after.children_user + after.children_system - client.children_user - client.children_system
    seen = (f"{report['requests_per_s']:.0f} requests/s of one token over "
            f"{report['connections']} connections, {report['errors']} errors; processor time per "
            f"request: {each} us in the server's threads, {1e6 * used / count:.0f} us in the client")
    return show("requests", seen, "5,000 a second on 2 cores",
                report["requests_per_s"] >= 5000 and report["errors"] == 0)


def overhead(arguments):
    with served.Served(served.STORIES, *MANY, "--max-num-seqs", "128") as server:
        flags = ["--concurrency", 128, "--input-tokens", 4, "--output-tokens", 200]
        bench(server, *flags, "-n", 128)
        before = thread_seconds(server)
        report = bench(server, *flags, "-n", 512)
        spent = spent_since(server, before)
    each_us = 1e6 * spent["http"] / report["output_tokens"]
    seen = (f"{each_us:.1f} us of processor time per streamed token in the threads for connections "
            f"({report['output_tokens']} tokens, 128 streams at once, {report['errors']} errors); "
            f"the engine's threads {1e6 * sum(spent.values()) / report['output_tokens'] - each_us:.1f}")
    return show("overhead", seen, "15 us", each_us < 15 and report["errors"] == 0)


def main():
    proofs = {proof.__name__: proof for proof in (streams, idle, requests, overhead)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", choices=proofs, action="append")
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--idle", type=int, default=10000)
    parser.add_argument("--seconds", type=float, default=8)
    arguments = parser.parse_args()
    good = [proofs[name](arguments) for name in arguments.only or proofs]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
