"""pagoda eval killed in the middle: what was finished is kept, and the same command goes on."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["PAGODA_SOURCE_DIR"], "tests"))
from python_tests import run  # noqa: E402

BINARY = os.environ["PAGODA_BINARY"]
STORIES = os.path.join(os.environ["PAGODA_SOURCE_DIR"], "tests/data/models/stories260K.gguf")
WORDS = [BINARY, "eval", STORIES, "--device", "cpu", "--threads", "1", "--kv", "fp16,fp32", "--json"]


class Resume(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pagoda-eval-")
        self.addCleanup(folder.cleanup)
        self.environment = {**os.environ, "XDG_CACHE_HOME": folder.name}
        self.verdicts = os.path.join(folder.name, "pagoda", "verdicts")

    def kept(self):
        """The configurations in the store, as whoever reads a file at any moment finds it."""
        try:
            names = [name for name in os.listdir(self.verdicts) if name.endswith(".json")]
        except FileNotFoundError:
            return set()
        found = set()
        for name in names:
            with open(os.path.join(self.verdicts, name)) as file:
                found |= {verdict["choice"] for verdict in json.load(file)["verdicts"]}
        return found

    def start(self):
        return subprocess.Popen(WORDS, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self):
        done = subprocess.run(WORDS, env=self.environment, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def end_after_the_first(self, how):
        process = self.start()
        end = time.monotonic() + 120
        while not self.kept() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.001)
        process.send_signal(how)
        process.communicate(timeout=60)
        return process.returncode

    def test_a_killed_run_goes_on(self):
        for how, status in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)):
            with self.subTest(signal=how):
                ended = self.end_after_the_first(how)
                kept = self.kept()
                self.assertIn("bf16", kept)
                self.assertEqual(ended, status, "it ended before it was killed")
                self.assertNotIn("fp32", kept, "it was killed too late to show anything")
                resumed = self.finish()
                self.assertEqual(set(resumed["settings"]["measured_before"]), kept)
                self.assertEqual([row["configuration"] for row in resumed["rows"]], ["bf16", "fp16", "fp32"])
                for name in os.listdir(self.verdicts):
                    self.assertTrue(name.endswith(".json") or name == "lock", name)
                    if name.endswith(".json"):
                        os.remove(os.path.join(self.verdicts, name))
                self.assertEqual(self.finish()["rows"], resumed["rows"], "measured in one go")
                for name in os.listdir(self.verdicts):
                    os.remove(os.path.join(self.verdicts, name))

    def test_two_runs_at_once_keep_both_results(self):
        words = [WORDS[:8] + [name, "--quick"] for name in ("fp16", "fp32")]
        for each in words:
            self.assertEqual(each[-3], "--kv")
        runs = [subprocess.Popen(each, env=self.environment, stdout=subprocess.DEVNULL) for each in words]
        for process in runs:
            self.assertEqual(process.wait(timeout=120), 0)
        self.assertEqual(self.kept(), {"bf16", "fp16", "fp32"})


if __name__ == "__main__":
    run(sys.modules[__name__])
