"""Prompts that one server computes and another answers: over a shared store, and from server to server."""

import json
import os
import sys
import tempfile
import unittest

import served
from redis_process import RedisProcess
from router_process import CHAT, Router, chat, prefill_apart

BLOCK = 16
PROMPT = [(7 * i * i + 3 * i) % 500 + 3 for i in range(300)]
WHOLE = (len(PROMPT) - 1) // BLOCK * BLOCK
FIRST_HALF = {"do_remote_decode": True, "do_remote_prefill": False, "remote_engine_id": None,
              "remote_block_ids": None, "remote_host": None, "remote_port": None}


def complete(server, params=None, headers=None, prompt=PROMPT, **fields):
    body = {"prompt": prompt, "max_tokens": 12, "temperature": 0, "logprobs": 2, **fields}
    if params is not None:
        body["kv_transfer_params"] = params
    return server.post("/v1/completions", body, headers)


def answer(reply):
    return reply["choices"][0]["text"], reply["choices"][0]["logprobs"]


def tokens_from(reply, tier):
    return reply["usage"]["prompt_tokens_details"].get("cached_tokens_by_tier", {}).get(tier, 0)


def transfers(server, outcome, headers=None):
    for line in server.request("GET", "/metrics", None, headers)[1].splitlines():
        if line.startswith("pagoda:kv_transfers_total") and f'"{outcome}"' in line:
            return int(float(line.rsplit(" ", 1)[1]))
    raise AssertionError(outcome)


class Apart(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        before = os.environ.get("XDG_CACHE_HOME")
        # Fingerprints and speeds are remembered here; the default model is not asked for.
        os.environ["XDG_CACHE_HOME"] = self.folder.name
        self.addCleanup(self.restore, before)

    @staticmethod
    def restore(before):
        os.environ.pop("XDG_CACHE_HOME", None)
        if before is not None:
            os.environ["XDG_CACHE_HOME"] = before

    def start(self, *flags, kind=served.Served, **options):
        model = [served.STORIES] if kind is served.Served else []
        server = kind(*model, "--kv-load", "always", *flags, **options)
        self.addCleanup(server.stop)
        return server

    def path(self, name, content=None):
        path = os.path.join(self.folder.name, name)
        if content is not None:
            with open(path, "wb") as file:
                file.write(content)
            os.chmod(path, 0o600)
        return path


@unittest.skipUnless(served.BUILT_WITH_REDIS, "this build has no Redis")
class SharedStore(Apart):
    def setUp(self):
        super().setUp()
        self.redis = RedisProcess()
        self.addCleanup(self.redis.stop)

    def pair(self, *flags, **options):
        return [self.start("--kv-remote", self.redis.url, *flags, **options) for _ in range(2)]

    def test_the_second_half_finds_what_the_first_computed(self):
        prefill, decode = self.pair()
        alone = answer(complete(self.start())[1])
        status, reply = complete(prefill, FIRST_HALF, max_tokens=1)
        self.assertEqual(status, 200, reply)
        params = reply["kv_transfer_params"]
        self.assertEqual((params["do_remote_prefill"], params["do_remote_decode"]), (True, False))
        self.assertEqual(params["remote_num_tokens"], WHOLE)
        self.assertTrue(params["remote_engine_id"].startswith("pagoda-"))
        self.assertEqual(params["remote_request_id"], reply["id"])
        status, reply = complete(decode, params)
        self.assertEqual(status, 200, reply)
        self.assertEqual(answer(reply), alone)
        self.assertEqual(tokens_from(reply, "redis"), WHOLE)
        self.assertNotIn("kv_transfer_params", reply)
        self.assertEqual(transfers(prefill, "handed_over"), 1)
        self.assertEqual(transfers(decode, "taken_over"), 1)

    def test_the_first_half_is_one_token_whatever_was_asked(self):
        prefill, _ = self.pair()
        status, reply = complete(prefill, FIRST_HALF, max_tokens=50, min_tokens=20)
        self.assertEqual(status, 200, reply)
        self.assertEqual(reply["usage"]["completion_tokens"], 1)

    def test_streams_and_all_apis_carry_it(self):
        prefill, decode = self.pair(kind=served.ChatServed)
        text = "Tell me about a bird and a tree, " * 4
        bodies = {
            CHAT: chat([{"role": "user", "content": text}]),
            "/v1/messages": {"model": "stories260K", "max_tokens": 8, "temperature": 0,
                             "messages": [{"role": "user", "content": text}]},
            "/v1/responses": {"model": "stories260K", "max_output_tokens": 8, "temperature": 0, "input": text},
        }
        for path, body in bodies.items():
            with self.subTest(path=path):
                status, reply = prefill.post(path, {**body, "kv_transfer_params": FIRST_HALF})
                self.assertEqual(status, 200, reply)
                params = reply["kv_transfer_params"]
                self.assertGreater(params["remote_num_tokens"], 0)
                status, reply = decode.post(path, {**body, "kv_transfer_params": params})
                self.assertEqual(status, 200, reply)
        stream = {**bodies[CHAT], "stream": True, "kv_transfer_params": FIRST_HALF}
        for fields in ({}, {"stream_options": {"include_usage": True}}):
            events = served.stream_events(prefill.request("POST", CHAT, {**stream, **fields})[1])
            self.assertGreater(events[-1]["kv_transfer_params"]["remote_num_tokens"], 0)

    def test_nothing_is_promised_that_is_not_there(self):
        # Without a shared store, and with one that is away, the reply says so.
        status, reply = complete(self.start(), FIRST_HALF)
        self.assertEqual(status, 200, reply)
        self.assertEqual(reply["kv_transfer_params"]["do_remote_prefill"], False)
        self.assertEqual(reply["kv_transfer_params"]["missing"], "no store is shared with others")
        prefill, _ = self.pair()
        self.redis.stop()
        served.wait_until(lambda: not prefill.get("/server_info")[1]["tiers"][0]["takes_writes"])
        status, reply = complete(prefill, FIRST_HALF)
        self.assertEqual(status, 200, reply)
        self.assertEqual(reply["kv_transfer_params"]["remote_num_tokens"], 0)
        self.assertEqual(reply["kv_transfer_params"]["missing"], "the shared store takes no pages")
        self.assertEqual(transfers(prefill, "not_handed_over"), 1)
        self.assertIn("kv_transfer_params", prefill.stderr())

    def test_a_dictionary_that_lies_is_computed(self):
        _, decode = self.pair()
        expected = answer(complete(self.start())[1])
        ours = {"do_remote_prefill": True, "remote_engine_id": "pagoda-0123456789abcdef",
                "remote_num_tokens": WHOLE, "remote_block_ids": [[1, 2], [3]], "more": {"a": 1}}
        for params, outcome in [
            (ours, "computed"),
            ({**ours, "remote_engine_id": "another"}, "foreign"),
            ({**ours, "remote_host": "192.0.2.1", "remote_port": 1}, "taken_over"),  # in memory by now
            ({**ours, "remote_num_tokens": 2**62}, "taken_over"),
        ]:
            before = transfers(decode, outcome)
            status, reply = complete(decode, params)
            self.assertEqual(status, 200, reply)
            self.assertEqual(answer(reply), expected)
            self.assertEqual(transfers(decode, outcome), before + 1, (params, outcome))
        self.assertEqual(decode.stderr().count("was not found, and was computed here"), 1)
        self.assertEqual(decode.stderr().count("another kind of server"), 1)

    def test_wrong_types_are_refused(self):
        server = self.start()
        for params in ("x", 3, ["x"], {"do_remote_decode": 1}, {"do_remote_prefill": "yes"},
                       {"remote_host": 5}, {"remote_port": "80"}, {"remote_port": 65536},
                       {"remote_block_ids": "all"}, {"remote_num_tokens": -1}, {"remote_engine_id": []},
                       {"remote_host": "h" * 256},
                       {"do_remote_decode": True, "do_remote_prefill": True}):
            status, reply = complete(server, params)
            self.assertEqual(status, 400, (params, reply))
            self.assertIn("kv_transfer_params", reply["error"]["message"])
        for params in (None, {}, {"do_remote_decode": False}):
            self.assertEqual(complete(server, params)[0], 200)

    def test_a_salt_is_answered_to_itself_alone(self):
        prefill, decode = self.pair()
        status, reply = complete(prefill, FIRST_HALF, cache_salt="mine")
        params = reply["kv_transfer_params"]
        self.assertEqual(params["remote_num_tokens"], WHOLE)
        status, reply = complete(decode, params, cache_salt="another")
        self.assertEqual((status, tokens_from(reply, "redis")), (200, 0))
        status, reply = complete(decode, params, cache_salt="mine")
        self.assertEqual((status, tokens_from(reply, "redis")), (200, WHOLE))

    def test_vllm_router(self):
        prefill, decode = self.pair(kind=served.ChatServed)
        alone = self.start(kind=served.ChatServed)
        messages = [{"role": "user", "content": "Tell me about a bird and a tree, " * 4}]
        expected = alone.post(CHAT, chat(messages))[1]["choices"][0]["message"]["content"]
        with Router("vllm", prefill_apart("vllm", prefill, decode)) as router:
            status, reply = router.ask(messages)
            self.assertEqual(status, 200, reply)
            self.assertEqual(reply["choices"][0]["message"]["content"], expected)
            other = [{"role": "user", "content": "And now a story about a dog and a ball, " * 4}]
            expected = alone.post(CHAT, chat(other))[1]["choices"][0]["message"]["content"]
            status, text = router.request("POST", CHAT, chat(other, stream=True))
            self.assertEqual(status, 200, text)
            pieces = [event["choices"][0]["delta"].get("content") or ""
                      for event in served.stream_events(text) if event["choices"]]
            self.assertEqual("".join(pieces), expected)
        self.assertEqual(transfers(prefill, "handed_over"), 2)
        self.assertEqual(transfers(decode, "taken_over"), 2)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
