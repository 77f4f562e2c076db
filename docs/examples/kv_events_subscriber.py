"""Keeps a copy of a server's prefix tree by its KV events; prints how many blocks it has.

    pip install pyzmq msgpack
    python3 kv_events_subscriber.py tcp://127.0.0.1:5557 tcp://127.0.0.1:5558

It may start late, miss batches and outlive the server: a snapshot or a replay gives what it lacks.
docs/guide/events.md explains the messages.
"""

import struct
import sys

import msgpack
import zmq

STORED = ("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium",
          "lora_name", "extra_keys", "group_idx", "kv_cache_spec_kind",
          "kv_cache_spec_sliding_window", "locality")
REMOVED = ("block_hashes", "medium", "group_idx", "locality")
FIELDS = {"BlockStored": STORED, "BlockRemoved": REMOVED, "AllBlocksCleared": ()}
END_OF_REPLAY = 2**64 - 1


def fields_of(event):
    """An event as a map, however it was encoded."""
    if isinstance(event, dict):
        return event
    return {"type": event[0], **dict(zip(FIELDS[event[0]], event[1:]))}


class Tree:
    """Blocks by (hash, medium): their parent, their tokens and the groups that have them."""

    def __init__(self):
        self.blocks = {}

    def apply(self, payload):
        _time, events, *_rank = msgpack.unpackb(payload)
        for event in map(fields_of, events):
            if event["type"] == "BlockStored":
                self.store(event)
            elif event["type"] == "BlockRemoved":
                self.remove(event)
            else:
                self.blocks.clear()

    def store(self, event):
        parent, size = event["parent_block_hash"], event["block_size"]
        for i, name in enumerate(event["block_hashes"]):
            block = self.blocks.setdefault((name, event["medium"]), {"groups": set()})
            block["parent"] = parent
            block["tokens"] = event["token_ids"][i * size:(i + 1) * size]  # private: none
            block["groups"].add(event["group_idx"])
            parent = name

    def remove(self, event):
        for name in event["block_hashes"]:
            block = self.blocks.get((name, event["medium"]))
            if not block:  # within a snapshot: it left before it was told of
                continue
            block["groups"].discard(event["group_idx"])
            if not block["groups"]:
                del self.blocks[(name, event["medium"])]


class Subscriber:
    def __init__(self, endpoint, replay_endpoint, topic=""):
        self.context = zmq.Context()
        self.events = self.context.socket(zmq.SUB)
        self.events.connect(endpoint)
        self.events.subscribe(topic)
        self.replay_endpoint = replay_endpoint
        self.tree = Tree()
        self.sequence = None  # of the last batch that the tree holds
        self.incarnation = None
        self.catch_up()

    def close(self):
        self.context.destroy(linger=0)

    def ask(self, request, seconds=30):
        """The answers to a request: (kind, sequence, payload), as long as the caller wants more."""
        socket = self.context.socket(zmq.DEALER)
        socket.connect(self.replay_endpoint)
        try:
            socket.send_multipart([b"", request])
            while socket.poll(1000 * seconds):
                _, kind, sequence, payload = socket.recv_multipart()
                yield kind.decode(), struct.unpack(">Q", sequence)[0], payload
            raise TimeoutError(f"no answer from {self.replay_endpoint}")
        finally:
            socket.close(linger=0)

    def catch_up(self):
        """The whole tree from a snapshot: what it holds is as of one batch."""
        for kind, sequence, payload in self.ask(b"get-snapshot"):
            if kind == "snapshot-begin":  # once more if events were lost on the way
                self.tree = Tree()
            elif kind == "snapshot-part":
                self.tree.apply(payload)
            elif kind == "snapshot-end":
                self.sequence = sequence
                self.incarnation = msgpack.unpackb(payload)["incarnation"]
                return
            else:
                raise RuntimeError(kind)

    def replay(self):
        """The batches after the last one, if the server still has all of them."""
        for _topic, sequence, payload in self.ask(struct.pack(">Q", self.sequence + 1)):
            if sequence == END_OF_REPLAY:
                return
            if sequence != self.sequence + 1:
                return self.catch_up()
            self.take(sequence, payload)

    def is_same_server(self):
        for _kind, _sequence, payload in self.ask(b"get-incarnation"):
            return msgpack.unpackb(payload)["incarnation"] == self.incarnation

    def take(self, sequence, payload):
        self.tree.apply(payload)
        self.sequence = sequence

    def follow(self, milliseconds):
        """Waits for a batch; False when none came."""
        if not self.events.poll(milliseconds):
            return False
        _topic, sequence, payload = self.events.recv_multipart()
        sequence = struct.unpack(">Q", sequence)[0]
        _time, _events, _rank, *incarnation = msgpack.unpackb(payload)
        if incarnation and incarnation != [self.incarnation]:
            self.catch_up()
        elif sequence == self.sequence + 1:
            self.take(sequence, payload)
        elif not self.is_same_server():
            self.catch_up()
        elif sequence > self.sequence:
            self.replay()
        return True


if __name__ == "__main__":
    subscriber = Subscriber(*sys.argv[1:])
    while True:
        print(f"batch {subscriber.sequence}: {len(subscriber.tree.blocks)} blocks", flush=True)
        subscriber.follow(60_000)
