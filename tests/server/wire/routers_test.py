"""Routers that people run, unchanged, in front of two servers: sglang-router and vllm-router.

A request whose worker dies while it answers is not looked at: whether it is sent again is the router's choice.
"""

import concurrent.futures
import http.client
import itertools
import json
import signal
import sys
import time
import unittest

import served
from router_process import CHAT, ROUTERS, Router, cache_aware, chat


def requests_of(worker):
    return worker.snapshot()["since_start"]["requests_finished"]


def begin_together(ask, count, seed=0):
    """Conversations that begin at once: a router that sees no prefix gives them to whoever has least to do."""
    histories = [[{"role": "user", "content": f"{(seed + i) * 7919} stories about a bird and a tree"}]
                 for i in range(1, count + 1)]
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        replies = list(pool.map(lambda history: ask(history, max_tokens=160), histories))
    return list(zip(histories, replies))


def conversations(ask, count=6, turns=5):
    """Cached prompt tokens of conversations behind their first turns, each turn behind all before it."""
    cached = 0
    begun = begin_together(ask, count)
    for turn in range(turns):
        for i, (history, (status, reply)) in enumerate(begun):
            assert status == 200, reply
            history.append({"role": "assistant", "content": reply["choices"][0]["message"]["content"]})
            history.append({"role": "user", "content": f"And then, for the {turn}th time?"})
            begun[i] = history, ask(history)
            cached += begun[i][1][1]["usage"]["prompt_tokens_details"]["cached_tokens"]
    return cached


class Routers(unittest.TestCase):
    """The servers stay; each test has a router of its own."""

    @classmethod
    def setUpClass(cls):
        cls.workers = [served.ChatServed() for _ in range(2)]

    @classmethod
    def tearDownClass(cls):
        for worker in cls.workers:
            worker.stop()

    def test_chats_and_streams_are_those_of_a_server(self):
        messages = [{"role": "user", "content": "Tell me about a bird"}]
        expected = self.workers[0].post(CHAT, chat(messages))[1]["choices"][0]["message"]["content"]
        for kind in ROUTERS:
            with self.subTest(router=kind), Router(kind, cache_aware(self.workers)) as router:
                self.check_chats(router, messages, expected)

    def check_chats(self, router, messages, expected):
        status, reply = router.ask(messages)
        self.assertEqual(status, 200, reply)
        self.assertEqual(reply["choices"][0]["message"]["content"], expected)
        status, text = router.request("POST", CHAT, chat(messages, stream=True))
        self.assertEqual(status, 200, text)
        pieces = [event["choices"][0]["delta"].get("content") or "" for event in served.stream_events(text)]
        self.assertEqual("".join(pieces), expected)
        status, reply = router.ask(messages, n=0)
        self.assertEqual(status, 400, reply)
        self.assertIn("n", json.dumps(reply))

    def test_a_conversation_stays_where_its_prefix_is(self):
        with served.ChatServed() as alone:
            most = conversations(lambda messages, **fields: alone.post(CHAT, chat(messages, **fields)))
        self.assertGreater(most, 1000)
        for kind in ROUTERS:
            with self.subTest(router=kind), Router(kind, cache_aware(self.workers)) as router:
                for worker in self.workers:
                    self.assertEqual(worker.post("/flush_cache", {})[0], 200)
                before = [requests_of(worker) for worker in self.workers]
                self.assertGreaterEqual(conversations(router.ask), 0.95 * most)
                shares = [requests_of(worker) - finished for worker, finished in zip(self.workers, before)]
                self.assertGreater(min(shares), 0, shares)

    def test_a_load_is_told(self):
        for worker in self.workers:
            status, loads = worker.get("/v1/loads?include=core")
            self.assertEqual(status, 200)
            self.assertEqual(loads["loads"][0]["num_running_reqs"], 0)
            self.assertGreater(loads["loads"][0]["max_total_num_tokens"], 1000)

    def test_an_empty_bearer_token_is_no_key(self):
        messages = [{"role": "user", "content": "Tell me about a bird"}]
        for value in ("Bearer ", "Bearer"):
            status, reply = self.workers[0].post(CHAT, chat(messages), {"Authorization": value})
            self.assertEqual(status, 200, reply)


class Failover(unittest.TestCase):
    """A worker dies, or drains, under load: whoever had not begun is answered."""

    def load(self, router, during, seconds=4, threads=4):
        """Requests by several clients; `during` happens after a second. The statuses of those that began after it."""
        end = time.monotonic() + seconds
        happened = []

        def client(number):
            statuses = []
            turn = 0
            while time.monotonic() < end:
                turn += 1
                began = time.monotonic()
                try:
                    status = router.ask([{"role": "user", "content": f"client {number}, turn {turn}"}])[0]
                except (OSError, http.client.HTTPException):
                    status = 0
                if happened and began > happened[0]:
                    statuses.append(status)
            return statuses

        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            clients = [pool.submit(client, number) for number in range(threads)]
            time.sleep(1)
            during()
            happened.append(time.monotonic())
            return [status for each in clients for status in each.result()]

    def test_a_worker_that_is_killed_and_comes_back(self):
        for kind in ROUTERS:
            with self.subTest(router=kind), served.ChatServed() as stays:
                dies = served.ChatServed()
                port = dies.port
                with Router(kind, cache_aware([stays, dies])) as router:
                    statuses = self.load(router, lambda: dies.signal(signal.SIGKILL))
                    self.assertGreater(len(statuses), 4)
                    self.assertEqual(set(statuses), {200})
                    dies.stop()
                    with served.ChatServed(port=port) as again:
                        seeds = itertools.count(100, 100)
                        served.wait_until(
                            lambda: begin_together(router.ask, 8, next(seeds)) and requests_of(again) > 0, 120)

    def test_a_worker_that_drains(self):
        for kind in ROUTERS:
            with self.subTest(router=kind), served.ChatServed() as stays, served.ChatServed() as drains:
                with Router(kind, cache_aware([stays, drains])) as router:
                    statuses = self.load(router, drains.signal)
                    self.assertGreater(len(statuses), 4)
                    self.assertEqual(set(statuses), {200})


if __name__ == "__main__":
    served.run(sys.modules[__name__])
