#!/usr/bin/env python3
"""Pages to Redis and Memcached and back, beside redis-benchmark on the same server.

    bench/remote_store.py [build] [server] [cluster]

server   a Redis and a Memcached
cluster  a Redis Cluster of three primaries, beside redis-benchmark --cluster on the same nodes

Both unless one is named. Starts servers of its own on loopback and stops them. Each figure is the best of five rounds that
alternate with each other: pages a second, and the processor time that the client needs for a page
(of the whole program in redis-benchmark's case), which other work on the machine disturbs less.
About two minutes.
"""
import json
import os
import pathlib
import resource
import socket
import subprocess
import sys
import tempfile
import time

ROUNDS = 5
SIZES = [(16_384, 4000), (368_640, 400), (4_194_304, 40)]  # bytes of a page, pages
PIPELINE = 16


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


class Server:
    def __init__(self, words, port):
        self.port = port
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(500):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.01)
        raise SystemExit(f"{words[0]} does not listen")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def redis():
    port = free_port()
    return Server(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                   "--appendonly", "no"], port)


def memcached():
    port = free_port()
    return Server(["memcached", "-p", str(port), "-l", "127.0.0.1", "-U", "0", "-u", "nobody",
                   "-m", "2048"], port)


class Cluster:
    """Three primaries without replicas: tools/redis_servers.py."""

    def __init__(self):
        script = pathlib.Path(__file__).resolve().parent.parent / "tools/redis_servers.py"
        self.process = subprocess.Popen(
            [sys.executable, script, "cluster", "--replicas", "0"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.ports = [node["port"] for node in json.loads(self.process.stdout.readline())["nodes"]]
        self.port = self.ports[0]
        self.url = "redis-cluster://" + ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()


def peer(port, page_bytes, pages, *cluster):
    """A pipelined connection to each node: SETs a second of different keys, GETs of keys that are
    there: of one key, in a cluster of one at each node."""
    def rate(verb, *more):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        output = subprocess.run(
            ["redis-benchmark", "-p", str(port), "-t", verb, "-d", str(page_bytes), "-n",
             str(pages), "-c", "3" if cluster else "1", "-P", str(PIPELINE), "--csv", *cluster,
             *more],
            check=True, capture_output=True, text=True).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        per_second = float(output.splitlines()[-1].split(",")[1].strip('"'))
        return per_second, cpu_s * 1e6 / pages

    up = rate("set", "-r", str(pages))
    rate("set")
    down = rate("get")
    return up[0], down[0], up[1], down[1]


def ours(build, url, page_bytes, pages, *more):
    output = subprocess.run(
        [f"{build}/remote_store_bench", url, str(page_bytes), str(pages), *more],
        check=True, capture_output=True, text=True).stdout
    speed = json.loads(output)
    return (speed["write_pages_s"], speed["read_pages_s"], speed["write_cpu_us"],
            speed["read_cpu_us"])


def measure(runs, ports, page_bytes):
    best = {name: (0, 0, 1e9, 1e9) for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            run_now = run()
            best[name] = (*map(max, best[name][:2], run_now[:2]),
                          *map(min, best[name][2:], run_now[2:]))
        for port in ports:
            subprocess.run(["redis-cli", "-p", str(port), "FLUSHALL"], check=True,
                           stdout=subprocess.DEVNULL)
    for name, (up, down, up_us, down_us) in best.items():
        print(f"| {page_bytes:,} | {name} | {up:,.0f} | {up * page_bytes / 1e6:,.0f} "
              f"| {down:,.0f} | {down * page_bytes / 1e6:,.0f} "
              f"| {up_us:,.0f} | {down_us:,.0f} |", flush=True)


def cluster_table(build):
    with Cluster() as nodes:
        for page_bytes, pages in SIZES:
            measure({"redis-benchmark --cluster": lambda: peer(nodes.port, page_bytes, pages,
                                                               "--cluster"),
                     "redis-cluster": lambda: ours(build, nodes.url, page_bytes, pages)},
                    nodes.ports, page_bytes)


def main():
    words = sys.argv[1:]
    kinds = [word for word in words if word in ("server", "cluster")] or ["server", "cluster"]
    build = next((word for word in words if word not in ("server", "cluster")), "build")
    print("| page | who | pages/s up | MB/s up | pages/s down | MB/s down | client\'s µs up | down |")
    print("|---|---|---|---|---|---|---|---|")
    if "server" in kinds:
        server_table(build)
    if "cluster" in kinds:
        cluster_table(build)


def server_table(build):
    with redis() as store, memcached() as cache, tempfile.TemporaryDirectory() as folder:
        key = os.path.join(folder, "key")
        with open(key, "wb") as file:
            file.write(os.urandom(32))
        os.chmod(key, 0o600)
        for page_bytes, pages in SIZES:
            runs = {
                "redis-benchmark": lambda: peer(store.port, page_bytes, pages),
                "redis": lambda: ours(build, f"redis://127.0.0.1:{store.port}", page_bytes, pages),
                "redis, sealed": lambda: ours(build, f"redis://127.0.0.1:{store.port}", page_bytes,
                                              pages, key),
                "memcached": lambda: ours(build, f"memcached://127.0.0.1:{cache.port}", page_bytes,
                                          pages),
            }
            measure(runs, [store.port], page_bytes)


main()
