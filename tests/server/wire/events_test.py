"""KV events over ZeroMQ: whoever subscribes has the tree that the server draws of itself."""

import contextlib
import hashlib
import json
import os
import struct
import subprocess
import sys
import threading
import time
import unittest

import msgpack
import served
import zmq

sys.path.insert(0, os.path.join(served.SOURCE, "docs/examples"))
from kv_events_subscriber import END_OF_REPLAY, Subscriber  # noqa: E402

ANY = "tcp://127.0.0.1:*"
ROOT = "9bd96a485ad84efdafb72ee48a1d7a69bcead0f8f0433173941b276b9581eef0"  # vLLM's NONE_HASH
BLOCK = 16
STORED_KEYS = ["type", "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id",
               "medium", "lora_name", "extra_keys", "group_idx", "kv_cache_spec_kind"]


def config(**fields):
    return json.dumps({"enable_kv_cache_events": True, "publisher": "zmq", "endpoint": ANY,
                       "replay_endpoint": ANY, **fields})


class EventServer(served.Served):
    def __init__(self, *flags, memory="64MiB", **fields):
        super().__init__(served.STORIES, "--kv-events-config", config(**fields), *flags,
                         memory=memory)
        facts = self.snapshot()["kv_events"]
        self.endpoint, self.replay = facts["endpoint"], facts["replay_endpoint"]
        self.incarnation = facts["incarnation"]

    def ask(self, prompt, **fields):
        body = {"prompt": prompt, "max_tokens": 24, "ignore_eos": True, "temperature": 0, **fields}
        status, reply = self.post("/v1/completions", body)
        assert status == 200, reply
        return reply

    def picture(self):
        """Whole blocks that are there: {name: (parent, tokens or [], pages)}."""
        status, picture = self.get("/cache/tree")
        assert status == 200 and picture["nodes"] == len(picture["tree"]), picture
        blocks, above = {}, [ROOT]
        for node in picture["tree"]:
            if not node["whole"]:
                continue
            above = above[:node["depth"] + 1]
            if node["pages"]:
                blocks[node["name"]] = (above[-1], node.get("tokens", []), node["pages"])
            above.append(node["name"])
        return blocks


def low64(name):
    return int(name[-16:], 16)


def as_picture(tree):
    return {name: (block["parent"], block["tokens"], len(block["groups"]))
            for (name, medium), block in tree.blocks.items() if medium == "GPU"}


def in_numbers(picture):
    return {low64(name): (None if parent == ROOT else low64(parent), tokens, pages)
            for name, (parent, tokens, pages) in picture.items()}


def in_bytes(picture):
    return {bytes.fromhex(name): (None if parent == ROOT else bytes.fromhex(parent), tokens, pages)
            for name, (parent, tokens, pages) in picture.items()}


@contextlib.contextmanager
def subscribed(server, **options):
    subscriber = Subscriber(server.endpoint, server.replay, **options)
    try:
        yield subscriber
    finally:
        subscriber.close()


def follow(subscriber, quiet_ms=300):
    while subscriber.follow(quiet_ms):
        pass


def cbor_head(major, value):
    for low, form in ((24, ">B"), (25, ">H"), (26, ">I")):
        if value < 24:
            return bytes([major << 5 | value])
        if value < 1 << 8 * struct.calcsize(form):
            return bytes([major << 5 | low]) + struct.pack(form, value)
    raise ValueError(value)


def block_name(parent, tokens, keys=()):
    """vLLM's sha256_cbor, written anew."""
    text = cbor_head(4, 3) + cbor_head(2, 32) + bytes.fromhex(parent) + cbor_head(4, len(tokens))
    text += b"".join(cbor_head(0, token) for token in tokens)
    text += cbor_head(4, len(keys)) if keys else b"\xf6"
    text += b"".join(cbor_head(3, len(key)) + key.encode() for key in keys)
    return hashlib.sha256(text).hexdigest()


STORY = "Once upon a time there was a little dog who liked to run in the big green park with Tom. "


class Events(unittest.TestCase):
    def assert_same(self, server, subscriber):
        follow(subscriber)
        self.assertEqual(as_picture(subscriber.tree), in_numbers(server.picture()))

    def test_the_tree_is_the_picture_after_every_request(self):
        with EventServer() as server:
            with subscribed(server) as subscriber:
                for i in range(6):
                    server.ask(STORY + f"Then {i} birds came. ")
                    self.assert_same(server, subscriber)
                self.assertGreater(len(subscriber.tree.blocks), 8)
                for (name, _), block in subscriber.tree.blocks.items():
                    self.assertEqual(len(block["tokens"]), BLOCK)

    def test_what_is_evicted_leaves(self):
        with EventServer("-c", "128", memory="320KiB") as server:
            with subscribed(server) as subscriber:
                for i in range(30):
                    server.ask(f"{i} cats and {i + 1} dogs went to the sea. " + STORY)
                    follow(subscriber, 20)
                self.assertGreater(server.snapshot()["since_start"]["blocks_evicted"], 10)
                self.assert_same(server, subscriber)

    def test_names_are_vllms_bytes(self):
        with EventServer(int_block_hashes=False) as server, subscribed(server) as subscriber:
            server.ask(STORY * 2)
            follow(subscriber)
            picture = server.picture()
            self.assertEqual(as_picture(subscriber.tree), in_bytes(picture))
            self.assertGreater(len(picture), 4)
            for name, (parent, tokens, _) in picture.items():
                self.assertEqual(name, block_name(parent, tokens))

    def test_who_starts_late_catches_up_from_a_snapshot(self):
        # The first batches are not kept for replay.
        with EventServer(buffer_steps=2) as server:
            for i in range(5):
                server.ask(f"{i} " + STORY)
            with subscribed(server) as late:
                self.assertEqual(as_picture(late.tree), in_numbers(server.picture()))
                self.assertEqual(late.incarnation, server.incarnation)
                server.ask("And " + STORY)
                self.assert_same(server, late)

    def test_a_snapshot_is_right_while_the_tree_changes(self):
        with EventServer("--block-size", "2", memory="2MiB") as server:
            stop = threading.Event()

            def talk(first):
                count = first
                while not stop.is_set():
                    server.ask(f"{count} men and {count} women. " + STORY, max_tokens=40)
                    count += 2

            askers = [threading.Thread(target=talk, args=(first,)) for first in (0, 1)]
            for asker in askers:
                asker.start()
            late = []
            try:
                for _ in range(6):
                    time.sleep(0.2)
                    late.append(Subscriber(server.endpoint, server.replay))
            finally:
                stop.set()
                for asker in askers:
                    asker.join()
            for subscriber in late:
                self.assert_same(server, subscriber)
                subscriber.close()

    def test_replay_gives_every_batch_again(self):
        with EventServer(topic="kv@pod") as server, subscribed(server, topic="kv@") as subscriber:
            seen = {}
            context = zmq.Context.instance()
            raw = context.socket(zmq.SUB)
            raw.connect(server.endpoint)
            raw.subscribe(b"kv@pod")
            time.sleep(0.3)
            for i in range(3):
                server.ask(f"{i} " + STORY)
            while raw.poll(300):
                topic, sequence, payload = raw.recv_multipart()
                self.assertEqual(topic, b"kv@pod")
                seen[struct.unpack(">Q", sequence)[0]] = payload
            raw.close()
            self.assertEqual(sorted(seen), list(range(min(seen), max(seen) + 1)))

            first = min(seen) + 1
            replayed = []
            for kind, sequence, payload in subscriber.ask(struct.pack(">Q", first)):
                if sequence == END_OF_REPLAY:
                    self.assertEqual((kind, payload), ("", b""))
                    break
                self.assertEqual(kind, "kv@pod")
                replayed.append((sequence, payload))
            self.assertEqual(replayed, [(s, seen[s]) for s in sorted(seen) if s >= first])

    def test_missed_batches_are_mended_by_replay_and_by_snapshot(self):
        for buffer_steps in (1000, 3):
            with EventServer(buffer_steps=buffer_steps) as server:
                with subscribed(server) as subscriber:
                    for i in range(4):
                        server.ask(f"{i} " + STORY)
                    for _ in range(3):
                        self.assertTrue(subscriber.events.poll(5000))
                        subscriber.events.recv_multipart()  # and lost
                    self.assert_same(server, subscriber)

    def test_maps_and_arrays_have_vllms_fields(self):
        batches = {}
        for encoding in ("map", "array"):
            with EventServer("-c", "128", memory="320KiB", encoding=encoding,
                             incarnation=encoding == "array") as server:
                with subscribed(server) as subscriber:
                    for i in range(12):
                        server.ask(f"{i} cats and dogs went home. " + STORY)
                    self.assert_same(server, subscriber)
                    batches[encoding] = [
                        msgpack.unpackb(payload)
                        for _, sequence, payload in self.until_end(subscriber)
                    ]
                    if encoding == "array":
                        self.assertEqual(batches[encoding][1][3:], [server.incarnation])
        maps, arrays = batches["map"], batches["array"]
        self.assertEqual(maps[0][1], [{"type": "AllBlocksCleared"}])
        self.assertEqual(arrays[0][1], [["AllBlocksCleared"]])
        self.assertTrue(all(len(batch) == 3 and batch[2] == 0 for batch in maps))
        self.assertLess(abs(maps[0][0] - time.time()), 600)
        stored = [event for batch in maps for event in batch[1] if event["type"] == "BlockStored"]
        removed = [event for batch in maps for event in batch[1] if event["type"] == "BlockRemoved"]
        self.assertEqual(list(stored[0]), STORED_KEYS)
        self.assertEqual(list(removed[0]), ["type", "block_hashes", "medium", "group_idx"])
        first = stored[0]
        self.assertEqual(first["parent_block_hash"], None)
        self.assertEqual(first["extra_keys"], [None] * len(first["block_hashes"]))
        self.assertEqual(len(first["token_ids"]), BLOCK * len(first["block_hashes"]))
        self.assertEqual((first["medium"], first["group_idx"], first["kv_cache_spec_kind"]),
                         ("GPU", 0, "full_attention"))
        self.assertTrue(any(len(event["block_hashes"]) > 1 for event in stored))
        as_array = next(event for batch in arrays for event in batch[1] if event[0] == "BlockStored")
        as_map = ["BlockStored", *(first.get(key) for key in STORED_KEYS[1:]), None, None]
        # Steps that follow fast are one batch: the runs may differ in length.
        blocks = min(len(as_array[1]), len(as_map[1]))
        for event in (as_array, as_map):
            for field, size in ((1, blocks), (3, BLOCK * blocks), (8, blocks)):
                event[field] = event[field][:size]
        self.assertEqual(as_array, as_map)

    def until_end(self, subscriber):
        for answer in subscriber.ask(struct.pack(">Q", 0)):
            if answer[1] == END_OF_REPLAY:
                return
            yield answer

    def test_salts_and_private_tokens_stay_inside(self):
        salt = "a-very-secret-salt"
        with EventServer() as server, subscribed(server) as subscriber:
            server.ask(STORY)
            follow(subscriber)
            public = len(subscriber.tree.blocks)
            server.ask("My own words are these: " + STORY, cache_salt=salt)
            self.assert_same(server, subscriber)
            private = [b for b in subscriber.tree.blocks.values() if not b["tokens"]]
            self.assertEqual(len(private), len(subscriber.tree.blocks) - public)
            self.assertGreater(len(private), 2)
            for _, _, payload in self.until_end(subscriber):
                self.assertNotIn(salt.encode(), payload)
                for event in msgpack.unpackb(payload)[1]:
                    if event.get("block_size") == 0:
                        self.assertEqual(event["token_ids"], [])
                        self.assertNotIn("extra_keys", event)
            # A router that knows prompt and salt finds the block by its name.
            tokens = server.post("/tokenize", {"prompt": "My own words are these: " + STORY})[1]
            name = block_name(ROOT, tokens["tokens"][:BLOCK], [salt])
            self.assertIn((low64(name), "GPU"), subscriber.tree.blocks)
            # A snapshot tells no more.
            with subscribed(server) as late:
                self.assertEqual(late.tree.blocks, subscriber.tree.blocks)

    def test_a_cleared_cache_is_told_so(self):
        with EventServer() as server, subscribed(server) as subscriber:
            server.ask(STORY)
            follow(subscriber)
            self.assertGreater(len(subscriber.tree.blocks), 2)
            server.post("/reset_prefix_cache", {})
            follow(subscriber)
            self.assertEqual(subscriber.tree.blocks, {})
            server.ask(STORY)
            self.assert_same(server, subscriber)

    def test_a_restart_is_known_not_guessed(self):
        for in_batches in (False, True):
            with EventServer(incarnation=in_batches) as server:
                endpoints = {"endpoint": server.endpoint.replace("127.0.0.1", "*"),
                             "replay_endpoint": server.replay}
                server.ask(STORY)
                subscriber = Subscriber(server.endpoint, server.replay)
            with EventServer(incarnation=in_batches, **endpoints) as again:
                self.assertNotEqual(again.incarnation, subscriber.incarnation)
                if in_batches:
                    subscriber.sequence = 0  # the next number, as it happens
                follow(subscriber, 500)  # until its socket has found the other server
                for i in range(3):
                    again.ask(f"{i} " + STORY)
                self.assert_same(again, subscriber)
                self.assertEqual(subscriber.incarnation, again.incarnation)
                subscriber.close()

    def test_a_subscriber_that_does_not_read_slows_nobody(self):
        with EventServer(hwm=2, buffer_steps=4) as server:
            deaf = zmq.Context.instance().socket(zmq.SUB)
            deaf.rcvhwm = 1
            deaf.connect(server.endpoint)
            deaf.subscribe(b"")
            asks = zmq.Context.instance().socket(zmq.DEALER)
            asks.rcvhwm = 1
            asks.connect(server.replay)
            with subscribed(server) as subscriber:
                for i in range(20):
                    asks.send_multipart([b"", b"get-snapshot"])
                    server.ask(f"{i} " + STORY)
                    follow(subscriber, 5)
                self.assert_same(server, subscriber)
            deaf.close(linger=0)
            asks.close(linger=0)

    def test_what_is_no_request_is_not_answered(self):
        with EventServer() as server, subscribed(server) as subscriber:
            for request in ([b"x"], [b"", b"get-the-tree"], [b"", b"", b""], [b"", b"\0" * 7], [b""]):
                asks = zmq.Context.instance().socket(zmq.DEALER)
                asks.connect(server.replay)
                asks.send_multipart(request)
                self.assertFalse(asks.poll(100), request)
                asks.close(linger=0)
            server.ask(STORY)
            self.assert_same(server, subscriber)

    def test_idle_costs_no_processor_time(self):
        from life_test import cpu_seconds

        with EventServer() as server, subscribed(server):
            server.ask(STORY)
            time.sleep(0.5)
            before = cpu_seconds(server.process.pid)
            time.sleep(2)
            self.assertLess(cpu_seconds(server.process.pid) - before, 0.03)

    def test_without_the_flag_there_are_no_events(self):
        with served.Served() as server:
            self.assertIsNone(server.snapshot()["kv_events"])
            self.assertEqual(server.get("/cache/tree")[0], 404)

    def test_a_wrong_configuration_is_an_error(self):
        for fields, words in (
            ({"endpoint": "nowhere://x"}, "nowhere://x"),
            ({"hwm": 0}, "hwm: is 0, expected a number from 1"),
            ({"encoding": "xml"}, 'encoding: is "xml"'),
            ({"topics": ""}, "topics: there is no such field"),
        ):
            done = subprocess.run(
                [served.BINARY, "serve", served.STORIES, "--port", "0", "--kv-events-config",
                 config(**fields)], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn("--kv-events-config: ", done.stderr)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
