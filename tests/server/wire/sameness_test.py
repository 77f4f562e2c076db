"""The cache, the batch and the wire never change an answer: text and log-probabilities are the
same cold, warm, streamed, alone and among others, and seeds repeat."""

import concurrent.futures
import json
import sys
import unittest

import served

TALE = "Once upon a time there was a little dog named Max. Max liked to run in the park."


def figures(reply):
    choice = reply["choices"][0]
    return choice["text"], choice["token_ids"], choice["logprobs"]


class Sameness(unittest.TestCase):
    def ask(self, server, body):
        status, reply = server.post("/v1/completions", body)
        self.assertEqual(status, 200, reply)
        return reply

    def streamed(self, server, body):
        reply, text = server.request("POST", "/v1/completions", {**body, "stream": True})
        self.assertEqual(reply.status, 200)
        words, ids, logprobs = "", [], {}
        for event in served.stream_events(text):
            choice = event["choices"][0]
            words += choice["text"]
            ids += choice["token_ids"]
            for name, values in choice["logprobs"].items():
                logprobs.setdefault(name, []).extend(values)
        return words, ids, logprobs

    def hold_everywhere(self, server, body):
        body = {**body, "logprobs": 3, "return_token_ids": True, "max_tokens": 32}
        server.post("/reset_prefix_cache", {})
        cold = self.ask(server, body)
        self.assertEqual(cold["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
        warm = self.ask(server, body)
        self.assertEqual(
            warm["usage"]["prompt_tokens_details"]["cached_tokens"],
            warm["usage"]["prompt_tokens"] - 1,
        )
        self.assertEqual(figures(warm), figures(cold))
        self.assertEqual(self.streamed(server, body), figures(cold))

        others = [
            {"prompt": TALE[: 20 + 7 * i], "max_tokens": 40, "temperature": 1.0, "n": 1 + i % 3}
            for i in range(8)
        ]
        for reset in (True, False):
            if reset:
                server.post("/reset_prefix_cache", {})
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                crowd = [pool.submit(self.ask, server, other) for other in others]
                among = pool.submit(self.ask, server, body)
                stream = pool.submit(self.streamed, server, body)
                self.assertEqual(figures(among.result()), figures(cold))
                self.assertEqual(stream.result(), figures(cold))
                for one in crowd:
                    one.result()

    def test_greedy(self):
        with served.Served(served.STORIES, "--max-num-batched-tokens", "65") as server:
            self.hold_everywhere(server, {"prompt": TALE, "temperature": 0})

    def test_with_chunks_cut_by_time(self):
        with served.Served(served.STORIES, "--itl-target", "0.3") as server:
            self.hold_everywhere(server, {"prompt": TALE, "temperature": 0})

    def test_seeded(self):
        with served.Served(served.STORIES, "--block-size", "4") as server:
            self.hold_everywhere(
                server, {"prompt": TALE, "temperature": 0.9, "top_p": 0.9, "seed": 11}
            )

    def test_without_a_cache_that_shares(self):
        body = {"prompt": TALE, "temperature": 0, "max_tokens": 32, "logprobs": 1,
                "return_token_ids": True}
        with served.Served() as server:
            shared = figures(self.ask(server, body))
        with served.Served(served.STORIES, "--no-enable-prefix-caching") as server:
            for _ in range(2):
                alone = self.ask(server, body)
                self.assertEqual(alone["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
                self.assertEqual(figures(alone), shared)

    def test_the_default_model(self):
        served.require_default_model(self)
        chat = {
            "messages": [{"role": "user", "content": "Name a river in Europe."}],
            "temperature": 0,
            "max_tokens": 16,
            "logprobs": True,
            "top_logprobs": 2,
        }
        with served.Served(served.DEFAULT_MODEL, "-c", "1024") as server:
            def ask():
                status, reply = server.post("/v1/chat/completions", chat)
                self.assertEqual(status, 200, reply)
                return reply
            cold = ask()
            warm = ask()
            self.assertEqual(warm["choices"][0]["logprobs"], cold["choices"][0]["logprobs"])
            usage = warm["usage"]
            self.assertEqual(
                usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"] - 1
            )
            by_source = usage["prompt_tokens_details"]["by_source"]
            self.assertEqual(
                sum(share["tokens"] for share in by_source.values()), usage["prompt_tokens"]
            )
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                replies = [pool.submit(ask) for _ in range(3)]
                for reply in replies:
                    self.assertEqual(
                        reply.result()["choices"][0]["message"], cold["choices"][0]["message"]
                    )


if __name__ == "__main__":
    served.run(sys.modules[__name__])
