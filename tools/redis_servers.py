#!/usr/bin/env python3
"""redis_servers.py cluster|sentinel: servers on loopback that belong together, until stdin ends.

    tools/redis_servers.py cluster --primaries 3 --replicas 3
    tools/redis_servers.py sentinel

Once they work together, a line of JSON names their addresses: {"nodes": [{"port": .., "pid": ..}]},
primaries first, then replicas (the first replica is the first primary's), then sentinels, which
know the primary as "kv". Then a line of stdin is a command, answered by a line of JSON:

    kill N                 ends node N with SIGKILL
    start N                starts it again, empty
    timeout MS             how long a node of a cluster may be silent before it counts as failed
    move FIRST LAST TO     moves slots to primary TO, with their keys, while clients go on
    half SLOT TO           begins to move a slot, and moves half of its keys
    failover N             replica N takes over from its primary, which lives
    owner SLOT             the port of the slot's node, as most nodes see it
    primary                the port that the sentinels name
    redis N WORD ...       any command to node N

--password makes all of them ask for it, --tls CERT KEY speaks TLS alone, trusting CERT.
"""
import argparse
import ctypes
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

SERVICE = "kv"
SLOTS = 16384
END_S = 60  # no state is waited for longer


class ReplyError(Exception):
    pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def wait_until(state, what):
    end = time.monotonic() + END_S
    while True:
        try:
            if state():
                return
        except (OSError, ReplyError):
            pass
        if time.monotonic() > end:
            raise SystemExit(f"redis_servers.py: after {END_S} s still not: {what}")
        time.sleep(0.02)


class Node:
    """A redis-server. `more`: arguments of its own, in which CONFIG is a file and BUS a port for it."""

    def __init__(self, folder, options, more=(), watches=None):
        self.folder = folder
        self.options = options
        self.more = list(more)
        self.watches = watches  # of a sentinel: the port of its primary
        self.process = None
        for _ in range(5):  # a port that was free may be another's by now
            self.port, self.bus = free_port(), free_port()
            self.config = os.path.join(folder, f"{self.port}.conf")
            if self.start():
                return
        raise SystemExit("redis_servers.py: redis-server does not start")

    def start(self):
        """False: it has ended before it answered."""
        words = self.sentinel_words() if self.watches else self.server_words()
        self.process = subprocess.Popen(["redis-server", *words], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, preexec_fn=die_with_parent)
        wait_until(lambda: self.process.poll() is not None or self.call("PING") == "PONG",
                   f"an answer at port {self.port}")
        return self.process.poll() is None

    def server_words(self):
        words = ["--bind", "127.0.0.1", "--dir", self.folder, "--save", "", "--appendonly", "no",
                 "--repl-diskless-sync-delay", "0"]
        if self.options.tls:
            cert, key = self.options.tls
            words += ["--port", "0", "--tls-port", str(self.port), "--tls-cert-file", cert,
                      "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-replication", "yes",
                      "--tls-cluster", "yes", "--tls-auth-clients", "optional"]
        else:
            words += ["--port", str(self.port)]
        if self.options.password:
            words += ["--requirepass", self.options.password, "--masterauth", self.options.password]
        return words + [word.replace("CONFIG", self.config).replace("BUS", str(self.bus))
                        for word in self.more]

    def sentinel_words(self):
        lines = [f"port {self.port}", "bind 127.0.0.1", f"dir {self.folder}",
                 f"sentinel monitor {SERVICE} 127.0.0.1 {self.watches} 1",
                 f"sentinel down-after-milliseconds {SERVICE} 1000",
                 f"sentinel failover-timeout {SERVICE} 3000"]
        if self.options.password:
            lines += [f"sentinel auth-pass {SERVICE} {self.options.password}",
                      f"requirepass {self.options.password}"]
        with open(self.config, "w", encoding="ascii") as config:
            config.write("\n".join(lines) + "\n")
        return [self.config, "--sentinel"]

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()

    def connect(self):
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=END_S)
        if not self.options.tls:
            return plain
        context = ssl.create_default_context(cafile=self.options.tls[0])
        return context.wrap_socket(plain, server_hostname="127.0.0.1")

    def call(self, *words):
        with self.connect() as server, server.makefile("rwb") as stream:
            if self.options.password:
                send(stream, ["AUTH", self.options.password])
                receive(stream)
            send(stream, words)
            return receive(stream)

    def info(self, section):
        lines = self.call("INFO", section).splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)


def send(stream, words):
    words = [str(word).encode() for word in words]
    stream.write(b"*%d\r\n" % len(words))
    for word in words:
        stream.write(b"$%d\r\n%s\r\n" % (len(word), word))
    stream.flush()


def receive(stream):
    line = stream.readline().rstrip(b"\r\n").decode("utf-8", "replace")
    kind, rest = line[:1], line[1:]
    if kind == "+":
        return rest
    if kind == "-":
        raise ReplyError(rest)
    if kind == ":":
        return int(rest)
    if kind == "$":
        if int(rest) < 0:
            return None
        return stream.read(int(rest) + 2)[:-2].decode("utf-8", "replace")
    if kind == "*":
        return [receive(stream) for _ in range(max(0, int(rest)))]
    raise OSError("the server hung up")


class Cluster:
    def __init__(self, folder, options):
        more = ["--cluster-enabled", "yes", "--cluster-config-file", "CONFIG",
                "--cluster-node-timeout", "15000", "--cluster-replica-validity-factor", "0",
                "--cluster-allow-replica-migration", "no", "--cluster-require-full-coverage", "no"]
        count = options.primaries + options.replicas
        self.primaries = options.primaries
        self.nodes = [Node(folder, options, more + ["--cluster-port", "BUS"]) for _ in range(count)]
        self.join(options.primaries)

    def join(self, primaries):
        for i, node in enumerate(self.nodes):
            node.id = node.call("CLUSTER", "MYID")
            node.call("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            if i < primaries:
                node.call("CLUSTER", "ADDSLOTSRANGE", SLOTS * i // primaries,
                          SLOTS * (i + 1) // primaries - 1)
        first = self.nodes[0]
        for node in self.nodes[1:]:
            first.call("CLUSTER", "MEET", "127.0.0.1", node.port, node.bus)
        ids = {node.id for node in self.nodes}
        for node in self.nodes:
            wait_until(lambda n=node: {line.split()[0] for line in
                                       n.call("CLUSTER", "NODES").splitlines()} == ids,
                       "all nodes know each other")
        for i, node in enumerate(self.nodes[primaries:]):
            node.call("CLUSTER", "REPLICATE", self.nodes[i % primaries].id)
        for node in self.nodes:
            wait_until(lambda n=node: "cluster_state:ok" in n.call("CLUSTER", "INFO") and
                       "fail" not in n.call("CLUSTER", "NODES"), "the cluster is ok")
        for node in self.nodes[primaries:]:
            wait_until(lambda n=node: n.info("replication").get("master_link_status") == "up",
                       "replicas follow")
        for node in self.nodes:  # everybody says the same of every slot
            wait_until(lambda n=node: self.ports_of(n) == self.ports_of(first),
                       "nodes agree on slots")

    def ports_of(self, node):
        return sorted((first, last, owner[1]) for first, last, owner, *_ in
                      node.call("CLUSTER", "SLOTS"))

    def alive(self):
        return [node for node in self.nodes if node.process.poll() is None]

    def owner(self, slot):
        votes = [port for node in self.alive() for first, last, port in self.ports_of(node)
                 if first <= slot <= last]
        return max(set(votes), key=votes.count) if votes else 0

    def by_port(self, port):
        return next(node for node in self.nodes if node.port == port)

    def open_slot(self, slot, source, target):
        target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)

    def migrate(self, slot, source, target, keys_max):
        keys = source.call("CLUSTER", "GETKEYSINSLOT", slot, keys_max)
        if keys:
            login = ["AUTH", source.options.password] if source.options.password else []
            source.call("MIGRATE", "127.0.0.1", target.port, "", 0, 30000, "REPLACE", *login, "KEYS", *keys)
        return len(keys)

    def move(self, first, last, to):
        target = self.nodes[int(to)]
        for slot in range(int(first), int(last) + 1):
            source = self.by_port(self.owner(slot))
            if source is target:
                continue
            self.open_slot(slot, source, target)
            while self.migrate(slot, source, target, 100) > 0:
                pass
            for node in [target, source]:
                node.call("CLUSTER", "SETSLOT", slot, "NODE", target.id)
        return True

    def half(self, slot, to):
        slot, target = int(slot), self.nodes[int(to)]
        source = self.by_port(self.owner(slot))
        keys = source.call("CLUSTER", "COUNTKEYSINSLOT", slot)
        self.open_slot(slot, source, target)
        return self.migrate(slot, source, target, keys // 2) if keys > 1 else 0

    def timeout(self, milliseconds):
        for node in self.alive():
            node.call("CONFIG", "SET", "cluster-node-timeout", milliseconds)
        return True

    def failover(self, number):
        return self.nodes[int(number)].call("CLUSTER", "FAILOVER")


class Sentinels:
    def __init__(self, folder, options):
        primary = Node(folder, options)
        replica = Node(folder, options, ["--replicaof", f"127.0.0.1 {primary.port}"])
        wait_until(lambda: replica.info("replication").get("master_link_status") == "up",
                   "the replica follows")
        self.watcher = Node(folder, options, watches=primary.port)
        self.nodes = [primary, replica, self.watcher]
        wait_until(lambda: len(self.watcher.call("SENTINEL", "REPLICAS", SERVICE)) == 1,
                   "the sentinel knows the replica")

    def primary(self):
        return int(self.watcher.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)[1])

    def failover(self, _):
        return self.watcher.call("SENTINEL", "FAILOVER", SERVICE)


def obey(servers, words):
    command, rest = words[0], words[1:]
    if command == "kill":
        servers.nodes[int(rest[0])].kill()
        return True
    if command == "start":
        return servers.nodes[int(rest[0])].start()
    if command == "redis":
        return servers.nodes[int(rest[0])].call(*rest[1:])
    if command == "owner":
        return servers.owner(int(rest[0]))
    return getattr(servers, command)(*rest)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["cluster", "sentinel"])
    parser.add_argument("--primaries", type=int, default=3)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--password", default="")
    parser.add_argument("--tls", nargs=2, metavar=("CERT", "KEY"))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    folder = tempfile.mkdtemp(prefix="pagoda_redis_")
    servers = None
    try:
        make = Cluster if options.kind == "cluster" else Sentinels
        servers = make(folder, options)
        print(json.dumps({"nodes": [{"port": node.port, "pid": node.process.pid}
                                    for node in servers.nodes]}), flush=True)
        for line in sys.stdin:
            try:
                reply = obey(servers, line.split())
            except (ReplyError, OSError, AttributeError, TypeError, IndexError) as error:
                reply = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(reply), flush=True)
    finally:
        for node in servers.nodes if servers else []:
            node.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
