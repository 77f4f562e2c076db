"""pagoda serve --kv-quality-gate: what it says, measures and refuses, and that requests go first.

bf16 is the baseline, so that fp16, which the gate concerns when it is given, stands for a smaller format."""

import glob
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import served

FORMAT = ["--kv-cache-dtype", "fp16", "--threads", "1"]


class Gate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pagoda-gate-")
        self.addCleanup(folder.cleanup)
        before = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = folder.name
        self.addCleanup(lambda: os.environ.pop("XDG_CACHE_HOME") if before is None
                        else os.environ.update(XDG_CACHE_HOME=before))
        self.verdicts = os.path.join(folder.name, "pagoda", "verdicts")

    def serve(self, *flags):
        server = served.Served(served.STORIES, *FORMAT, *flags)
        self.addCleanup(server.stop)
        return server

    def next_line(self, server, seconds=60):
        """What the server prints behind its greeting; nothing after `seconds`."""
        if not select.select([server.process.stdout], [], [], seconds)[0]:
            return ""
        return server.process.stdout.readline().decode()

    def files(self):
        return glob.glob(os.path.join(self.verdicts, "*.json"))

    def measure(self):
        subprocess.run([served.BINARY, "eval", served.STORIES, "--kv", "fp16", "--quick", "--threads", "1"],
                       check=True, stdout=subprocess.DEVNULL, timeout=120)

    def change_verdict(self, **figures):
        (path,) = self.files()
        with open(path) as file:
            content = json.load(file)
        for verdict in content["verdicts"]:
            if verdict["choice"] == "fp16":
                verdict["result"]["divergence"].update(figures)
        with open(path, "w") as file:
            json.dump(content, file)

    def story(self, server, prompt="Once upon a time", tokens=60):
        status, reply = server.post("/v1/completions", {
            "model": "stories260K", "prompt": prompt, "max_tokens": tokens, "temperature": 0})
        self.assertEqual(status, 200, reply)
        return reply["choices"][0]["text"]

    def test_warn_says_the_verdict(self):
        self.measure()
        server = self.serve("--kv-quality-gate", "warn")
        line = self.next_line(server)
        # 5 layers of 4 KV heads of 8 + 8 values of 16 bits
        self.assertRegex(line, r"^KV fp16: 5,120 bits a token, [\d,]+ tokens fit; mean KL [\d.e-]+, same top token "
                               r"[\d.]+ % of 170 positions\n$")
        self.assertEqual(len(self.files()), 1)

    def test_warn_measures_in_idle_time_and_requests_go_first(self):
        quiet = self.serve("--kv-quality-gate", "off")
        expected = self.story(quiet)
        server = self.serve("--kv-quality-gate", "warn")
        line = self.next_line(server)
        self.assertIn("quality not measured: pagoda eval", line)
        self.assertIn("stories260K.gguf --kv fp16", line)
        # Nothing is idle while requests come: no measurement begins.
        end = time.monotonic() + 2.5
        stories = 0
        while time.monotonic() < end:
            self.assertEqual(self.story(server), expected)
            self.assertEqual(self.children(server), [])
            stories += 1
        self.assertFalse(self.files())
        # A tenant's figures follow an answer within 100 ms.
        served.wait_until(lambda: self.stories_counted(server) == stories)
        before = self.cache_figures(server)
        self.assertRegex(self.next_line(server), r"^KV fp16: .*; mean KL ")
        self.assertEqual(self.cache_figures(server), before, "the measurement has a cache of its own")
        self.assertEqual(self.children(server), [])
        self.assertEqual(self.story(server), expected)
        self.assertEqual(len(self.files()), 1)

    def stories_counted(self, server):
        _, text = server.request("GET", "/metrics")
        (count,) = re.findall(r"^pagoda:tenant_requests_finished_total\{.*\} (\d+)$", text, re.MULTILINE)
        return int(count)

    def cache_figures(self, server):
        _, text = server.request("GET", "/metrics")
        figures = [line for line in text.splitlines() if re.match(r"[a-z]+:\S*(block|tokens_total|success)", line)]
        self.assertGreater(len(figures), 4)
        return figures

    def children(self, server):
        found = []
        for path in glob.glob(f"/proc/{server.process.pid}/task/*/children"):
            with open(path) as file:
                found += file.read().split()
        return found

    def words_of(self, process):
        with open(f"/proc/{process}/cmdline", "rb") as file:
            return file.read().split(b"\0")

    def test_a_server_that_stops_takes_its_measurement_along(self):
        server = self.serve("--kv-quality-gate", "warn")
        self.assertIn("not measured", self.next_line(server))
        served.wait_until(lambda: self.children(server) or self.files())
        children = self.children(server)
        server.process.kill()
        server.process.wait()
        served.wait_until(lambda: not any(os.path.exists(f"/proc/{child}/exe") for child in children))

    def test_a_server_that_is_killed_before_it_serves_takes_its_measurement_along(self):
        server = served.Served(served.STORIES, *FORMAT, "--kv-quality-gate", "refuse", wait=False)
        self.addCleanup(server.stop)
        children = []
        end = time.monotonic() + 60
        while not children and time.monotonic() < end:
            children = self.children(server)
        (child,) = map(int, children)
        while b"eval" not in self.words_of(child):  # before that it is a copy of the server
            pass
        os.kill(child, signal.SIGSTOP)
        files = f"/proc/{child}/fd"
        links = [os.readlink(os.path.join(files, name)) for name in os.listdir(files)]
        self.assertEqual([link for link in links if link.startswith("socket:")], [])
        server.process.kill()
        server.process.wait()
        served.wait_until(lambda: not os.path.exists(f"/proc/{child}/exe"))

    def test_refuse_measures_first_and_serves_what_passes(self):
        server = self.serve("--kv-quality-gate", "refuse")
        self.assertIn("KV fp16: measuring its quality first: pagoda eval", server.greeting)
        self.assertRegex(self.next_line(server), r"^KV fp16: .*; mean KL ")
        self.assertEqual(len(self.files()), 1)
        again = self.serve("--kv-quality-gate", "refuse")
        self.assertNotIn("measuring", again.greeting)

    def test_layers_that_are_skipped_have_a_verdict_of_their_own(self):
        skip = ["--kv-cache-dtype-skip-layers", "3,1", "--kv-quality-gate", "warn"]
        server = self.serve(*skip)
        line = self.next_line(server)
        self.assertRegex(line, r"^KV fp16 skip 1,3: .*; quality not measured: pagoda eval ")
        self.assertIn("--kv fp16 --kv-cache-dtype-skip-layers 1,3", line)
        self.assertRegex(self.next_line(server), r"^KV fp16 skip 1,3: .*; mean KL ")
        self.assertRegex(self.next_line(self.serve(*skip)), r"^KV fp16 skip 1,3: .*; mean KL ")
        self.assertRegex(self.next_line(self.serve("--kv-quality-gate", "warn")), r"^KV fp16: .*; quality not measured")

    def test_refuse_does_not_serve_below_the_bounds(self):
        self.measure()
        for figures, reason in (({"kl_mean": 0.02}, "mean KL 0.02 is above 0.01"),
                                ({"kl_mean": 0.001, "same_top": 0.9}, "90.00 % of positions, less than 98 %")):
            self.change_verdict(**figures)
            with self.assertRaises(RuntimeError) as ended:
                served.Served(served.STORIES, *FORMAT, "--kv-quality-gate", "refuse")
            self.assertIn("--kv-quality-gate refuse: KV fp16: ", str(ended.exception))
            self.assertIn(reason, str(ended.exception))
        warned = self.serve("--kv-quality-gate", "warn")
        self.assertIn("below the bounds", self.next_line(warned))

    def test_refuse_without_a_measurement_does_not_serve(self):
        os.makedirs(os.path.dirname(self.verdicts))
        with open(self.verdicts, "w"):
            pass  # nothing can be kept where a file stands
        with self.assertRaises(RuntimeError) as ended:
            served.Served(served.STORIES, *FORMAT, "--kv-quality-gate", "refuse")
        self.assertIn("could not be measured", str(ended.exception))

    def test_nothing_is_said_of_the_baseline_of_full_formats_and_when_off(self):
        for flags in (["--kv-quality-gate", "off"], []):
            self.assertEqual(self.next_line(self.serve(*flags), 2.5), "", flags)
        baseline = served.Served(served.STORIES, "--kv-cache-dtype", "bf16", "--kv-quality-gate", "refuse")
        self.addCleanup(baseline.stop)
        self.assertEqual(self.next_line(baseline, 2.5), "")
        self.assertFalse(self.files())

    def test_a_damaged_verdict_is_measured_again(self):
        self.measure()
        (path,) = self.files()
        with open(path, "w") as file:
            file.write('{"format": 1, "verdicts": [{"subject": "kv"')
        server = self.serve("--kv-quality-gate", "refuse")
        self.assertIn("measuring its quality first", server.greeting)
        with open(path) as file:
            self.assertEqual({verdict["choice"] for verdict in json.load(file)["verdicts"]}, {"bf16", "fp16"})


if __name__ == "__main__":
    served.run(sys.modules[__name__])
