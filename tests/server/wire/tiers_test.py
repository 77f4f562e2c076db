"""KV that outlives memory and the process: disk, host memory and Redis behind pagoda serve."""

import concurrent.futures
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import unittest

import served
from redis_process import RedisProcess

BLOCK = 16
PROMPT = [(7 * i * i + 3 * i) % 500 + 3 for i in range(300)]
WHOLE = (len(PROMPT) - 1) // BLOCK * BLOCK


def ask(server, prompt=PROMPT, key=None, **fields):
    """An answer: its text and the log-probabilities that it was chosen by, and its usage."""
    body = {"prompt": prompt, "max_tokens": 12, "temperature": 0, "logprobs": 2, **fields}
    headers = {"Authorization": f"Bearer {key}"} if key else None
    status, reply = server.post("/v1/completions", body, headers)
    assert status == 200, reply
    choice = reply["choices"][0]
    return (choice["text"], choice["logprobs"]), reply["usage"]["prompt_tokens_details"]


def wait_written(server, pages, key=None, tier=0):
    headers = {"Authorization": f"Bearer {key}"} if key else None
    served.wait_until(
        lambda: server.get("/server_info", headers)[1]["tiers"][tier]["pages_written"] >= pages
    )


def metric(server, name, **labels):
    text = server.request("GET", "/metrics")[1]
    for line in text.splitlines():
        if line.startswith(name + "{") and all(f'{k}="{v}"' in line for k, v in labels.items()):
            return float(line.rsplit(" ", 1)[1])
    raise AssertionError(f"no {name} with {labels}")


class Tiers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.cache = self.path("cache")
        os.makedirs(self.cache)
        # Fingerprints and speeds are remembered here; the default model is not asked for.
        self.addCleanup(self.restore, "XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME"))
        os.environ["XDG_CACHE_HOME"] = self.cache

    @staticmethod
    def restore(name, value):
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def serve(self, *flags, model=served.STORIES, **options):
        return served.Served(model, *flags, **options)

    def disk(self, *flags, **options):
        return self.serve("--kv-disk", self.path("kv"), "--kv-disk-size", "200MB",
                          "--kv-load", "always", *flags, **options)


class Disk(Tiers):
    @staticmethod
    def explain(server, prompt):
        status, reply = server.post("/cache/explain", {"prompt": prompt})
        assert status == 200, reply
        return reply

    def test_a_clean_stop_keeps_what_was_computed(self):
        with self.disk() as server:
            first, details = ask(server)
            self.assertEqual(details["cached_tokens"], 0)
        with self.disk() as server:
            served.wait_until(lambda: self.explain(server, PROMPT)["matched_by_tier"]["tier"])
            why = self.explain(server, PROMPT)
            self.assertEqual(why["matched_by_tier"], {"memory": 0, "tier": WHOLE})
            self.assertEqual(why["reason"], "whole_blocks")
            status, estimate = server.post("/v1/kv/estimate", {"prompt": PROMPT})
            self.assertEqual(status, 200)
            self.assertEqual(estimate["cached_tokens_by_tier"], {"memory": 0, "disk": WHOLE})
            self.assertEqual(estimate["tokens_to_compute"], len(PROMPT) - WHOLE)
            self.assertEqual(estimate["missing"], why)
            self.assertEqual(why["reachable_tokens"], len(PROMPT) - 1)
            self.assertIn(f"the last {len(PROMPT) - WHOLE} tokens", why["advice"])
            why = self.explain(server, PROMPT[:WHOLE + 1])
            self.assertEqual(why["matched_by_tier"], {"memory": 0, "tier": WHOLE})
            self.assertEqual((why["reason"], why["reachable_tokens"]), ("none", WHOLE))
            half = PROMPT[:160] + [5] * 100
            why = self.explain(server, half)
            self.assertEqual(why["matched_by_tier"], {"memory": 0, "tier": 160})
            self.assertEqual(why["reason"], "never_seen")
            again, details = ask(server)
            self.assertEqual(again, first)
            self.assertEqual(details["cached_tokens"], WHOLE)
            self.assertEqual(details["cached_tokens_by_tier"], {"memory": 0, "disk": WHOLE})
            pages = metric(server, "pagoda:tier_pages_read_total", tier="disk")
            self.assertEqual(pages, WHOLE / BLOCK)
            self.explain_says_what_usage_says(server)
            # It is in memory now.
            third, details = ask(server)
            self.assertEqual(third, first)
            self.assertEqual(details["cached_tokens_by_tier"]["disk"], 0)

    def explain_says_what_usage_says(self, server):
        for gives in ("disk", "memory"):
            if gives == "disk":
                server.post("/reset_prefix_cache", {})
            status, reply = server.post("/v1/completions", {
                "prompt": PROMPT, "max_tokens": 1, "temperature": 0, "cache_explain": True})
            self.assertEqual(status, 200)
            by_tier = reply["usage"]["prompt_tokens_details"]["cached_tokens_by_tier"]
            told = reply["cache_explain"]["matched_by_tier"]
            self.assertEqual((told["memory"], told["tier"]), (by_tier["memory"], by_tier["disk"]))
            self.assertGreater(by_tier[gives], 0)

    def test_the_last_line_counts_what_tiers_gave(self):
        with self.disk() as server:
            ask(server)
        with self.disk() as server:
            ask(server)
            server.process.terminate()
            last = server.process.stdout.read().decode()
        self.assertRegex(last, rf"^of {len(PROMPT)} prompt tokens the cache had {WHOLE} \(9\d\.\d %\), {WHOLE} of them from tiers")

    def test_a_quantised_model_reads_its_own_pages_alone(self):
        quantised = ["--quantization", "q8_0"]
        with self.disk("--kv-write", "through") as server:
            plain, _ = ask(server)
        # A file that is not kept, one that is, and the same again: bytes, and so pages, are equal.
        unkept = [*quantised, "--quantized-cache-size", "0"]
        with self.disk("--kv-write", "through", *unkept) as server:
            first, details = ask(server)
            self.assertEqual(details["cached_tokens"], 0)
            self.assertNotEqual(first, plain)
            self.assertEqual(os.listdir(self.path("cache/pagoda/quantized")), ["lock"])
        for _ in range(2):
            with self.disk(*quantised) as server:
                self.assertEqual(server.get("/v1/models")[1]["data"][0]["id"], "stories260K")
                again, details = ask(server)
                self.assertEqual(again, first)
                self.assertEqual(details["cached_tokens_by_tier"]["disk"], WHOLE)
        with self.disk() as server:
            again, details = ask(server)
            self.assertEqual(again, plain)
            self.assertEqual(details["cached_tokens_by_tier"]["disk"], WHOLE)

    def test_a_kv_format_and_a_kv_policy_find_their_own_pages_again(self):
        configurations = [["--kv-cache-dtype", "int8"], ["--kv-policy", "streaming:4+120"]]
        answers = []
        for flags in [[], *configurations]:
            with self.disk(*flags) as server:
                first, details = ask(server)
                self.assertEqual(details["cached_tokens"], 0, flags)
                self.assertNotIn(first, answers, flags)
                answers.append(first)
        for flags, first in zip(configurations, answers[1:]):
            with self.disk(*flags) as server:
                again, details = ask(server)
                self.assertEqual(again, first, flags)
                self.assertEqual(details["cached_tokens"], WHOLE, flags)
                self.assertGreater(details["cached_tokens_by_tier"]["disk"], 0, flags)

    def test_a_reset_empties_memory_and_leaves_the_disk(self):
        with self.disk() as server:
            first, _ = ask(server)
            ask(server)
            wait_written(server, WHOLE // BLOCK)
            served.wait_until(server.is_at_rest)
            status, reply = server.post("/reset_prefix_cache?reset_external=true", {})
            self.assertEqual((status, reply["error"]["param"]), (400, "reset_external"))
            status, _ = server.post("/reset_prefix_cache", {})
            self.assertEqual(status, 200)
            again, details = ask(server)
            self.assertEqual(again, first)
            self.assertEqual(details["cached_tokens_by_tier"], {"memory": 0, "disk": WHOLE})

    def test_what_was_used_twice_survives_a_kill(self):
        with self.disk() as server:
            first, _ = ask(server)
            ask(server)
            wait_written(server, WHOLE // BLOCK)
            time.sleep(1)  # durable within a second
            server.signal(signal.SIGKILL)
            server.wait()
        with self.disk() as server:
            again, details = ask(server)
            self.assertEqual(again, first)
            self.assertEqual(details["cached_tokens_by_tier"]["disk"], WHOLE)

    def test_through_keeps_what_was_computed_once(self):
        with self.disk("--kv-write", "through") as server:
            first, _ = ask(server)
            wait_written(server, WHOLE // BLOCK)
            time.sleep(1)
            server.signal(signal.SIGKILL)
            server.wait()
        with self.disk() as server:
            again, details = ask(server)
            self.assertEqual(again, first)
            self.assertEqual(details["cached_tokens"], WHOLE)

    def test_another_kernel_set_and_another_block_size_find_nothing(self):
        with self.disk() as server:
            ask(server)
        os.environ["PAGODA_KERNELS"] = "ref"
        self.addCleanup(os.environ.pop, "PAGODA_KERNELS", None)
        with self.disk() as server:
            _, details = ask(server)
            self.assertEqual(details["cached_tokens"], 0)
        del os.environ["PAGODA_KERNELS"]
        with self.disk("--block-size", "8") as server:
            _, details = ask(server)
            self.assertEqual(details["cached_tokens"], 0)

    def test_damage_is_a_miss_with_a_reason_and_never_an_answer(self):
        with self.disk() as server:
            first, _ = ask(server)
        slabs = [name for name in os.listdir(self.path("kv")) if name.endswith(".slab")]
        self.assertEqual(len(slabs), 1)
        with open(os.path.join(self.path("kv"), slabs[0]), "r+b") as slab:
            size = slab.seek(0, os.SEEK_END)
            for at in range(5000, size, 7919):  # every slot is hit
                slab.seek(at)
                byte = slab.read(1)
                slab.seek(at)
                slab.write(bytes([byte[0] ^ 0x10]))
        with self.disk() as server:
            again, details = ask(server)
            self.assertEqual(again, first)
            self.assertLess(details["cached_tokens"], WHOLE)
            damaged = metric(server, "pagoda:tier_failures_total", tier="disk", reason="damaged")
            self.assertGreater(damaged, 0)

    def test_a_second_process_serves_without_it_and_says_so(self):
        with self.disk() as first, self.disk() as second:
            self.assertIn("KV on disk", first.greeting)
            self.assertNotIn("KV on disk", second.greeting)
            self.assertIn("not kept on disk", second.stderr())
            self.assertEqual(ask(first)[0], ask(second)[0])

    def test_a_folder_that_was_named_and_cannot_be_used_is_an_error(self):
        plain = self.path("plain")
        with open(plain, "w"):
            pass
        for folder in (plain, "/proc/none"):
            with self.assertRaisesRegex(RuntimeError, f"error: --kv-disk: {re.escape(folder)}: [^()]*$"):
                self.serve("--kv-disk", folder)

    def test_an_encrypted_store_shows_no_tokens_and_needs_its_key(self):
        key = self.path("key")
        with open(os.open(key, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write("ab" * 32)
        tokens = b"".join(token.to_bytes(4, "little") for token in PROMPT[:BLOCK])
        with self.disk() as server:
            first, _ = ask(server)
        self.assertTrue(self.in_slab(tokens))
        shutil.rmtree(self.path("kv"))
        with self.disk("--kv-store-key", key) as server:
            self.assertEqual(ask(server)[0], first)
        self.assertFalse(self.in_slab(tokens))
        with self.disk("--kv-store-key", key) as server:
            again, details = ask(server)
            self.assertEqual((again, details["cached_tokens"]), (first, WHOLE))
        with self.assertRaisesRegex(RuntimeError, "written with a key, and none is given"):
            self.disk()

    def in_slab(self, needle):
        for name in os.listdir(self.path("kv")):
            with open(os.path.join(self.path("kv"), name), "rb") as file:
                if needle in file.read():
                    return True
        return False

    def test_a_slow_disk_changes_no_answer(self):
        with self.disk() as server:
            first, _ = ask(server)
        slow = ["--kv-disk-bytes-per-second", "200000"]
        with self.serve("--kv-disk", self.path("kv"), "--kv-disk-size", "200MB", *slow) as server:
            for _ in range(3):
                self.assertEqual(ask(server)[0], first)

    def test_is_off_when_asked_and_on_by_default(self):
        with self.serve("--kv-disk", "off") as server:
            self.assertNotIn("KV on disk", server.greeting)
            self.assertEqual(server.get("/server_info")[1]["tiers"], [])
        self.addCleanup(self.restore, "PAGODA_KV_DISK", os.environ.get("PAGODA_KV_DISK"))
        os.environ.pop("PAGODA_KV_DISK", None)
        with self.serve() as server:
            place = os.path.join(self.cache, "pagoda/kv")
            self.assertIn(place, server.greeting)
            self.assertEqual(os.stat(place).st_mode & 0o777, 0o700)


class Removal(Tiers):
    def test_a_tenant_leaves_every_tier_and_nobody_else_does(self):
        keys = self.path("keys")
        with open(keys, "w") as file:
            file.write("tenant anna\nkey anna-key anna\ntenant bert\nkey bert-key bert\n"
                       "tenant ops\nkey ops-key ops admin\n")
        flags = ["--api-keys", keys, "--secret-file", self.path("secret")]
        with self.disk(*flags) as server:
            for key in ("anna-key", "bert-key"):
                ask(server, key=key)
                _, details = ask(server, key=key)
                self.assertEqual(details["cached_tokens"], len(PROMPT) - 1)
            wait_written(server, 2 * (WHOLE // BLOCK), key="ops-key")
            reply, _ = server.request("DELETE", "/cache/tenant/anna", None,
                                      {"Authorization": "Bearer bert-key"})
            self.assertEqual(reply.status, 403)
            reply, _ = server.request("DELETE", "/cache/tenant/nobody", None,
                                      {"Authorization": "Bearer ops-key"})
            self.assertEqual(reply.status, 404)
            headers = {"Authorization": "Bearer ops-key"}
            reply, text = server.request("DELETE", "/cache/tenant/anna", None, headers)
            self.assertEqual(reply.status, 200, text)
            told = json.loads(text)
            self.assertTrue(told["removed_everywhere"], told)
            by_tier = {tier["tier"]: tier for tier in told["tiers"]}
            self.assertGreaterEqual(by_tier["pool"]["blocks"], WHOLE // BLOCK)
            self.assertGreaterEqual(by_tier["disk"]["blocks"], WHOLE // BLOCK)
            self.assertTrue(by_tier["disk"]["overwritten"])
            _, details = ask(server, key="anna-key", max_tokens=1)
            self.assertEqual(details["cached_tokens"], 0)
            _, details = ask(server, key="bert-key")
            self.assertEqual(details["cached_tokens"], len(PROMPT) - 1)
            server.request("DELETE", "/cache/tenant/anna", None, headers)
        with self.disk(*flags) as server:
            _, details = ask(server, key="anna-key", max_tokens=1)
            self.assertEqual(details["cached_tokens"], 0)
            _, details = ask(server, key="bert-key")
            self.assertEqual(details["cached_tokens_by_tier"]["disk"], WHOLE)


class HostMemory(Tiers):
    def test_what_a_small_pool_evicts_comes_back_from_main_memory(self):
        flags = ["--kv-host-size", "64MiB", "--kv-load", "always", "--max-model-len", "400"]
        with self.serve(*flags, memory="1MiB") as server:
            prompts = [[(token + 31 * i) % 500 + 3 for token in PROMPT] for i in range(12)]
            first = [ask(server, prompt)[0] for prompt in prompts]
            loaded = 0
            for prompt, answer in zip(prompts, first):
                again, details = ask(server, prompt)
                self.assertEqual(again, answer)
                loaded += details["cached_tokens_by_tier"]["host"]
            self.assertGreater(loaded, 0)
            served.wait_until(server.is_at_rest)

    def test_users_who_fill_the_cache_find_their_conversations_again(self):
        # Six conversations at once in a pool for two: whoever waits for room loads when it comes.
        users, turns, asked = 6, 3, 96
        flags = ["--kv-host-size", "64MiB", "--kv-load", "always", "--max-model-len", "400"]
        alone = {}
        with self.serve("--max-model-len", "400") as server:
            for user in range(users):
                alone[user], _ = self.converse(server, user, turns, asked)
        with self.serve(*flags, memory="384KiB") as server:
            with concurrent.futures.ThreadPoolExecutor(users) as pool:
                talks = [pool.submit(self.converse, server, user, turns, asked) for user in range(users)]
                talks = [talk.result() for talk in talks]
            for user, (texts, _) in enumerate(talks):
                self.assertEqual(texts, alone[user])
            # Of a turn, all that went before but the last block can be found; how much of it is
            # written in time is a matter of luck. Without room of its own a fifth is found.
            possible = users * sum(turn * asked - BLOCK for turn in range(1, turns))
            self.assertGreater(sum(cached for _, cached in talks), possible / 4)
            served.wait_until(server.is_at_rest)

    @staticmethod
    def converse(server, user, turns, asked):
        """Its answers, and the prompt tokens that were not computed."""
        prompt, texts, cached = [], [], 0
        for turn in range(turns):
            prompt = prompt + [(token + 31 * user + 7 * turn) % 500 + 3 for token in PROMPT[:asked]]
            text, details = ask(server, prompt)
            texts.append(text)
            cached += details["cached_tokens"]
        return texts, cached


@unittest.skipUnless(served.BUILT_WITH_REDIS, "the program was built without Redis")
@unittest.skipUnless(shutil.which("redis-server") or served.on_build_machine(), "redis-server is not here")
class Redis(Tiers):
    def setUp(self):
        super().setUp()
        self.redis = RedisProcess()
        self.addCleanup(self.redis.stop)

    def remote(self, *flags, **options):
        server = self.serve("--kv-disk", "off", "--kv-remote", self.redis.url,
                            "--kv-load", "always", *flags, **options)
        served.wait_until(lambda: server.get("/server_info")[1]["tiers"][0]["on"])
        return server

    def test_rows_turned_by_other_factors_are_not_shared(self):
        """longrope has two tables of factors; the served context chooses, up to 32 tokens the short."""
        model = os.path.join(served.SOURCE, "tests", "data", "models", "arch_phi3_longrope.gguf")
        prompt = [token % 50 + 3 for token in PROMPT[:24]]
        answers = {}
        for context, hit in ((32, 0), (64, 0), (32, BLOCK), (48, BLOCK), (64, BLOCK)):
            with self.remote("--max-model-len", str(context), model=model) as server:
                answer, details = ask(server, prompt, max_tokens=4)
                self.assertEqual(details["cached_tokens"], hit, context)
                table = "short" if context == 32 else "long"
                self.assertEqual(answers.setdefault(table, answer), answer)
                # Nothing is written before the file's fingerprint is known.
                served.wait_until(lambda: ask(server, prompt, max_tokens=4) and hit > 0 or
                                  server.get("/server_info")[1]["tiers"][0]["pages_written"] > 0)
        self.assertNotEqual(answers["short"], answers["long"])

    def test_two_servers_give_each_other_hits(self):
        with self.remote() as first, self.remote() as second:
            answer, _ = ask(first)
            ask(first)
            wait_written(first, WHOLE // BLOCK)
            again, details = ask(second)
            self.assertEqual(again, answer)
            self.assertEqual(details["cached_tokens_by_tier"], {"memory": 0, "redis": WHOLE})
            other = PROMPT[100:] + PROMPT[:100]
            answer, _ = ask(second, other)
            ask(second, other)
            wait_written(second, WHOLE // BLOCK)
            again, details = ask(first, other)
            self.assertEqual((again, details["cached_tokens_by_tier"]["redis"]), (answer, WHOLE))

    def test_a_store_that_goes_away_costs_nothing_but_its_hits(self):
        with self.remote() as server:
            first, _ = ask(server)
            ask(server)
            wait_written(server, WHOLE // BLOCK)
            server.post("/reset_prefix_cache", {})
            self.redis.pause()
            again, _ = ask(server)  # waits its limit, then computes
            self.assertEqual(again, first)
            self.redis.stop()
            server.post("/reset_prefix_cache", {})
            again, details = ask(server)
            self.assertEqual((again, details["cached_tokens"]), (first, 0))
            served.wait_until(server.is_at_rest)

    def test_the_greeting_says_whether_the_store_answers(self):
        with self.remote() as server:
            self.assertIn(f"KV in {self.redis.url} (connected)\n", server.greeting)
        self.redis.stop()
        with self.serve("--kv-disk", "off", "--kv-remote", self.redis.url) as server:
            self.assertIn(f"no KV in {self.redis.url}: ", server.greeting)
            self.assertNotIn("(connected)", server.greeting)
            self.assertEqual(ask(server)[1]["cached_tokens"], 0)

    def test_removals_that_wait_for_a_store_stop_nobody(self):
        keys = self.path("keys")
        with open(keys, "w") as file:
            file.write("tenant anna\nkey anna-key anna\ntenant bert\nkey bert-key bert\n"
                       "tenant ops\nkey ops-key ops admin\n")
        os.chmod(keys, 0o600)
        admin = {"Authorization": "Bearer ops-key"}
        with self.serve("--kv-disk", "off", "--kv-remote", self.redis.url,
                        "--api-keys", keys, "--secret-file", self.path("secret")) as server:
            def is_on():
                return server.get("/server_info", admin)[1]["tiers"][0]["on"]

            def remove():
                reply, text = server.request("DELETE", "/cache/tenant/anna", None, admin)
                return reply.status, json.loads(text)

            served.wait_until(is_on)
            ask(server, key="anna-key")
            ask(server, key="anna-key")
            wait_written(server, WHOLE // BLOCK, key="ops-key")
            self.redis.pause()
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                told = [pool.submit(remove) for _ in range(8)]
                for _ in range(20):
                    self.assertEqual(server.get("/health")[0], 200)
                ask(server, key="bert-key")
                self.assertFalse(all(one.done() for one in told))
                self.redis.resume()
                for one in told:
                    self.assertEqual(one.result()[0], 200)
            served.wait_until(is_on)
            served.wait_until(lambda: remove()[1]["removed_everywhere"])
            _, details = ask(server, key="anna-key", max_tokens=1)
            self.assertEqual(details["cached_tokens"], 0)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
