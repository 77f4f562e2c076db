"""aider works with the server, by a model whose answers are known
(tests/data/make_scripted_model.py)."""

import os
import subprocess
import sys
import tempfile
import unittest

import served

SCRIPTED = os.path.join(served.SOURCE, "tests/data/models/scripted_calls.gguf")


class Aider(unittest.TestCase):
    def ask(self, server, *flags):
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run(
                [sys.executable, "-m", "aider", "--model", "openai/scripted_calls",
                 "--openai-api-base", server.url + "/v1", "--openai-api-key", "none",
                 "--no-git", "--yes-always", "--no-pretty", "--no-analytics", "--no-check-update",
                 "--no-show-model-warnings", "--no-show-release-notes", "--map-tokens", "0",
                 "--edit-format", "ask", "--message", "How warm is it?", *flags],
                cwd=folder, env={**os.environ, "HOME": folder,
                                 "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)

    def test_shows_what_the_model_says(self):
        with served.Served(SCRIPTED) as server:
            for flags in (["--stream"], ["--no-stream"]):
                answer = self.ask(server, *flags)
                self.assertEqual(answer.returncode, 0, answer.stderr)
                self.assertIn("Let me ask.", answer.stdout, answer.stderr)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
