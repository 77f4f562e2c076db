"""Tiers whose model file was replaced, or whose disk takes no writes."""

import errno
import hashlib
import os
import resource
import shutil
import sys
import time

import served
from tiers_test import BLOCK, PROMPT, WHOLE, Tiers, ask, wait_written


class Fingerprint(Tiers):
    """What is remembered of a model's file, and what a server does when it was wrong."""

    def setUp(self):
        super().setUp()
        self.model = self.path("model.gguf")
        shutil.copy(served.STORIES, self.model)
        self.memory = os.path.join(self.cache, "pagoda/fingerprints")
        os.makedirs(os.path.dirname(self.memory), exist_ok=True)

    def serve(self, *flags, **options):
        return served.Served(self.model, *flags, **options)

    @staticmethod
    def digest_of(path):
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def remember(self, digest):
        """As a server that ran before would have; its file must be old enough to be told."""
        state = os.stat(self.model)
        wait = state.st_ctime_ns / 1e9 + 2.1 - time.time()
        time.sleep(max(0, wait))
        with open(self.memory, "w") as file:
            file.write(f"{digest} v2 {state.st_dev}:{state.st_ino}:{state.st_size}:"
                       f"{state.st_mtime_ns}:{state.st_ctime_ns}\n")

    def other_model(self, path):
        """A model of the same shape, size and name, and of other weights."""
        with open(served.STORIES, "rb") as file:
            bytes_ = bytearray(file.read())
        # Near the end are fp32 weights: their exponents stay.
        for at in range(len(bytes_) - 200_000, len(bytes_) - 4, 4):
            bytes_[at + 1] ^= 0x55
            bytes_[at + 2] ^= 0x2A
        with open(path, "wb") as file:
            file.write(bytes_)

    def replace_model(self, way):
        before = os.stat(self.model)
        if way == "in place":
            self.other_model(self.model)
        else:
            fresh = self.path("fresh")
            self.other_model(fresh)
            os.rename(fresh, self.model)
        os.utime(self.model, ns=(before.st_atime_ns, before.st_mtime_ns))
        after = os.stat(self.model)
        self.assertEqual((after.st_size, after.st_mtime_ns), (before.st_size, before.st_mtime_ns))

    def test_a_replaced_model_reads_nothing_of_the_old_one(self):
        for way in ("in place", "by rename"):
            with self.subTest(way):
                shutil.copy(served.STORIES, self.model)
                self.remember(self.digest_of(self.model))
                with self.disk() as server:
                    old, _ = ask(server)
                self.replace_model(way)
                with self.disk() as server:
                    new, details = ask(server)
                    self.assertNotEqual(new, old, "its weights are others")
                    self.assertEqual(details["cached_tokens"], 0)
                shutil.rmtree(self.path("kv"))

    def test_what_was_remembered_is_confirmed_and_dropped_when_it_is_wrong(self):
        # A store full of another model's pages, and a memory that says they are this one's.
        other = self.path("other.gguf")
        self.other_model(other)
        kv = ["--kv-disk", self.path("kv"), "--kv-disk-size", "200MB", "--kv-load", "always"]
        with served.Served(other, *kv) as server:
            foreign, _ = ask(server)
        with self.serve() as server:
            right, _ = ask(server)
        self.assertNotEqual(foreign, right)
        self.remember(self.digest_of(other))
        with self.disk() as server:
            served.wait_until(lambda: "bytes are not those" in server.stderr())
            self.assertIn("error:", server.stderr())
            for cached in (0, len(PROMPT) - 1):
                answer, details = ask(server)
                self.assertEqual(answer, right)
                self.assertEqual(details["cached_tokens_by_tier"], {"memory": cached, "disk": 0})
            pages = server.get("/server_info")[1]["tiers"][0]["pages_written"]
            self.assertEqual(pages, 0)
        # The next start knows better, and what it keeps is its own.
        for cached in (0, WHOLE):
            with self.disk() as server:
                answer, details = ask(server)
                self.assertEqual(answer, right)
                self.assertEqual(details["cached_tokens_by_tier"]["disk"], cached)
                self.assertNotIn("error:", server.stderr())
        with served.Served(other, *kv) as server:
            answer, details = ask(server)
            self.assertEqual((answer, details["cached_tokens"]), (foreign, WHOLE))

    @staticmethod
    def open_when_read(fifo):
        """Its writing end, once somebody waits at the other."""
        end = time.monotonic() + 60
        while True:
            try:
                return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO or time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def test_a_model_that_changes_after_its_weights_were_read_is_not_used_with_tiers(self):
        # Once its weights are packed, a server reads the speeds that it remembers: here it waits.
        speeds = os.path.join(os.path.dirname(self.memory), "prefill_rates")
        for way in ("in place", "by rename"):
            with self.subTest(way):
                shutil.copy(served.STORIES, self.model)
                with self.serve() as server:
                    right, _ = ask(server)
                if os.path.exists(speeds):
                    os.unlink(speeds)
                os.mkfifo(speeds)
                with self.disk("--kv-write", "through", wait=False) as server:
                    gate = self.open_when_read(speeds)
                    os.unlink(speeds)
                    time.sleep(0.02)  # more than a tick of the file system's clock
                    self.replace_model(way)
                    os.close(gate)
                    server.wait_ready()
                    served.wait_until(lambda: "KV is kept in memory only" in server.stderr())
                    self.assertIn(f"{self.model}: changed after it was opened", server.stderr())
                    answer, _ = ask(server)
                    if way == "by rename":
                        self.assertEqual(answer, right, "it computes with what it opened")
                    served.wait_until(server.is_at_rest)
                    tier = server.get("/server_info")[1]["tiers"][0]
                    self.assertEqual(tier["pages_written"], 0)
                # Nothing of it is found by those who read what is there now.
                with self.disk() as server:
                    answer, details = ask(server)
                    self.assertNotEqual(answer, right)
                    self.assertEqual(details["cached_tokens"], 0)
                shutil.rmtree(self.path("kv"))

    def test_kv_of_a_model_that_was_written_over_while_it_ran_is_kept_nowhere(self):
        # Floats read every weight from the mapped file while they compute.
        self.addCleanup(self.restore, "PAGODA_KERNELS", os.environ.get("PAGODA_KERNELS"))
        os.environ["PAGODA_KERNELS"] = "ref"
        with open(self.model, "rb") as file:
            good = file.read()
        with self.serve() as server:
            right, _ = ask(server)
        with self.disk("--kv-write", "through") as server:
            ask(server, [5] * 100)
            served.wait_until(lambda: server.get("/server_info")[1]["tiers"][0]["pages_written"] >= 6)
            time.sleep(0.02)  # more than a tick of the file system's clock
            self.other_model(self.path("other.gguf"))
            with open(self.path("other.gguf"), "rb") as other, open(self.model, "r+b") as file:
                file.write(other.read())  # never shorter: mapped bytes stay
            # It computes with what is there, until the change is seen: then the request ends.
            body = {"prompt": PROMPT, "max_tokens": 12, "temperature": 0, "logprobs": 2}
            status, reply = server.post("/v1/completions", body)
            self.assertIn(status, (200, 500), reply)
            if status == 200:
                self.assertNotEqual(reply["choices"][0]["text"], right[0])
            served.wait_until(lambda: "changed after it was opened" in server.stderr())
            with open(self.model, "r+b") as file:
                file.write(good)
        with self.disk() as server:
            answer, details = ask(server)
            self.assertEqual(answer, right)
            self.assertEqual(details["cached_tokens"], 0)

    def test_new_attributes_of_the_model_file_end_no_request_and_keep_nothing_more(self):
        with self.disk("--kv-write", "through") as server:
            first, _ = ask(server)
            wait_written(server, WHOLE // BLOCK)
            time.sleep(0.02)  # more than a tick of the file system's clock
            os.chmod(self.model, 0o640)
            for _ in range(2):
                other, details = ask(server, PROMPT[1:])
            self.assertGreater(details["cached_tokens"], 0, "memory keeps what it has")
            served.wait_until(lambda: "not written to them until the next start" in server.stderr())
            self.assertNotIn("error:", server.stderr())
            begin = time.monotonic()
        self.assertLess(time.monotonic() - begin, 8, "a stop waits for no write")
        with self.disk() as server:
            again, details = ask(server)
            self.assertEqual((again, details["cached_tokens_by_tier"]["disk"]), (first, WHOLE))
            again, details = ask(server, PROMPT[1:])
            self.assertEqual((again, details["cached_tokens_by_tier"]["disk"]), (other, 0))

    def test_a_stop_keeps_pages_though_the_fingerprint_was_only_remembered(self):
        self.remember(self.digest_of(self.model))
        with self.disk() as server:
            first, _ = ask(server)
        with self.disk() as server:
            again, details = ask(server)
            self.assertEqual((again, details["cached_tokens_by_tier"]["disk"]), (first, WHOLE))


class RefusedWrites(Tiers):
    """No file may grow any more, whoever asks: as on a disk that is read-only."""

    LARGEST = 4096  # enough for what the server says

    def test_other_tiers_go_on_and_the_stop_is_prompt_and_says_why(self):
        with self.disk("--kv-host-size", "64MiB", "--kv-write", "through",
                       "--kv-stop-seconds", "60") as server:
            limits = (self.LARGEST, self.LARGEST)
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)
            prompts = [[(token + 31 * i) % 500 + 3 for token in PROMPT] for i in range(4)]
            for prompt in prompts:
                ask(server, prompt)
            wait_written(server, 4 * (WHOLE // BLOCK), tier=0)
            tiers = {tier["tier"]: tier for tier in server.get("/server_info")[1]["tiers"]}
            self.assertTrue(tiers["host"]["takes_writes"])
            self.assertFalse(tiers["disk"]["takes_writes"])
            self.assertEqual(tiers["disk"]["pages_written"], 0)
            self.assertIn("File too large", tiers["disk"]["condition"])
            # Nothing is left to do, and nothing is done.
            served.wait_until(server.is_at_rest)
            begin, spent = time.monotonic(), self.cpu_s(server)
            time.sleep(1)
            self.assertLess(self.cpu_s(server) - spent, 0.1 * (time.monotonic() - begin))
            began = time.monotonic()
            server.signal()
            self.assertEqual(server.wait(50), 0)
            self.assertLess(time.monotonic() - began, 30, "of 60 s it was given")
            self.assertIn("KV is not written to disk: writes fail: File too large", server.stderr())
            self.assertNotIn("--kv-stop-seconds", server.stderr())

    @staticmethod
    def cpu_s(server):
        with open(f"/proc/{server.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    served.run(sys.modules[__name__])
