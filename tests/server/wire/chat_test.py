"""pagoda chat goes on when its context is full, with a model of its own and with a server's."""

import os
import subprocess
import sys
import tempfile
import unittest

import served

QUESTIONS = [f"Tell me of Tom, number {i}." for i in range(12)]


class Chat(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.template = os.path.join(cls.folder.name, "story.jinja")
        with open(cls.template, "w") as file:
            file.write(served.STORY_TEMPLATE)
        cls.server = served.Served(served.STORIES, "--chat-template", cls.template, "-c", "256")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.folder.cleanup()

    def talk(self, *flags, url=False):
        """The lines of stderr, once every question was answered."""
        where = ["--url", self.server.url] if url else [
            served.STORIES, "--chat-template", self.template, "-c", "256"]
        run = subprocess.run(
            [served.BINARY, "chat", *where, "--temp", "0", "-n", "24", "--system", "You tell stories.", *flags],
            input="\n".join(QUESTIONS) + "\n", capture_output=True, text=True, timeout=120)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stderr.splitlines()

    def test_the_oldest_turns_go(self):
        for url in (False, True):
            lines = self.talk(url=url)
            self.assertEqual([line for line in lines if line.startswith("error")], [])
            self.assertEqual(sum(line.startswith("[TTFT") for line in lines), len(QUESTIONS))
            self.assertTrue(any("left out, the oldest" in line for line in lines), lines)

    def test_a_chat_takes_kv_formats_and_policies(self):
        for flags in (["--kv-cache-dtype", "int8"], ["-ctk", "int8", "-ctv", "bf16"],
                      ["--kv-policy", "streaming:4+100"]):
            lines = self.talk(*flags)
            self.assertEqual([line for line in lines if line.startswith("error")], [], flags)
        refused = subprocess.run(
            [served.BINARY, "chat", served.STORIES, "--chat-template", self.template, "-p", "Hi",
             "--kv-cache-dtype", "int8", "--kv-cache-dtype-skip-layers", "sliding_window"],
            capture_output=True, text=True, timeout=120)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("--kv-cache-dtype-skip-layers: sliding_window, but no layer", refused.stderr)

    def test_without_truncation_questions_fail(self):
        for url in (False, True):
            lines = self.talk("--truncation", "none", url=url)
            self.assertTrue(any(line.startswith("error") and "context holds 256" in line for line in lines), lines)

    def test_older_turns_become_a_summary(self):
        for url in (False, True):
            lines = self.talk("--compact-at", "0.5", "--keep-turns", "1", url=url)
            self.assertEqual([line for line in lines if line.startswith("error")], [])
            self.assertTrue(any("became a summary" in line for line in lines), lines)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
