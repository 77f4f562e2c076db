"""Every curl line of docs/guide/serve.md works as printed."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import served

GUIDE = os.path.join(served.SOURCE, "docs/guide/serve.md")
ADDRESS = "http://127.0.0.1:8000"


def commands():
    with open(GUIDE) as guide:
        blocks = re.findall(r"```sh\n(.*?)```", guide.read(), re.S)
    for block in blocks:
        yield from re.split(r"\n(?=curl )", block.strip())


class Guide(unittest.TestCase):
    def run_all(self, server):
        count = 0
        for command in commands():
            self.assertTrue(command.startswith("curl "), command)
            self.assertIn(ADDRESS, command)
            done = subprocess.run(
                ["bash", "-c", command.replace(ADDRESS, server.url) + " -sS"],
                capture_output=True, text=True, timeout=300,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            if '"stream": true' in command:
                self.assertGreater(len(served.stream_events(done.stdout)), 2)
            else:
                self.assertNotIn("error", json.loads(done.stdout), command)
            count += 1
        self.assertGreaterEqual(count, 8)

    def test_with_the_bundled_model(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
            template.write(served.STORY_TEMPLATE)
            template.flush()
            with served.Served(served.STORIES, "--chat-template", template.name) as server:
                self.run_all(server)

    def test_with_the_default_model_and_the_line_it_prints(self):
        served.require_default_model(self)
        with served.Served(served.DEFAULT_MODEL, "-c", "512") as server:
            self.run_all(server)
            printed = re.search(r"^try: (curl .*)$", server.greeting, re.M).group(1)
            shorter = printed.replace('{"messages"', '{"max_tokens": 8, "messages"')
            done = subprocess.run(["bash", "-c", shorter + " -sS"], capture_output=True, text=True)
            reply = json.loads(done.stdout)
            self.assertEqual(reply["choices"][0]["message"]["role"], "assistant")


if __name__ == "__main__":
    served.run(sys.modules[__name__])
