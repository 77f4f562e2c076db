"""aider works with the server, by a model whose answers are known
(tests/data/make_scripted_model.py)."""

import os
import subprocess
import sys
import tempfile
import unittest

import served

MODELS = os.path.join(served.SOURCE, "tests/data/models")


def run_aider(server, model, folder, *flags):
    return subprocess.run(
        [sys.executable, "-m", "aider", "--model", f"openai/{model}",
         "--openai-api-base", server.url + "/v1", "--openai-api-key", "none",
         "--no-git", "--yes-always", "--no-pretty", "--no-analytics", "--no-check-update",
         "--no-show-model-warnings", "--no-show-release-notes", "--map-tokens", "0", *flags],
        cwd=folder, env={**os.environ, "HOME": folder, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


class Aider(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_shows_what_the_model_says(self):
        with served.Served(os.path.join(MODELS, "scripted_calls.gguf")) as server:
            for stream in ("--stream", "--no-stream"):
                answer = run_aider(server, "scripted_calls", self.folder, stream,
                                   "--edit-format", "ask", "--message", "How warm is it?")
                self.assertEqual(answer.returncode, 0, answer.stderr)
                self.assertIn("Let me ask.", answer.stdout, answer.stderr)

    def test_edits_the_file_that_the_model_changes(self):
        path = os.path.join(self.folder, "greeting.txt")
        with open(path, "w") as file:
            file.write("To whom it concerns:\nHello!\nYours\n")
        with served.Served(os.path.join(MODELS, "scripted_edit.gguf")) as server:
            answer = run_aider(server, "scripted_edit", self.folder, "--edit-format", "diff",
                               "--message", "Greet as in the morning.", "greeting.txt")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        with open(path) as file:
            self.assertEqual(file.read(), "To whom it concerns:\nGood morning!\nYours\n",
                             answer.stdout + answer.stderr)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
