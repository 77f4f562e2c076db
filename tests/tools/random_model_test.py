"""bench/make_random_model.py: what it writes is a model that runs, and depends on its seed alone."""

import hashlib
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ["PAGODA_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import python_tests  # noqa: E402

# shape, type, name
MODELS = [
    ("tiny", "Q4_0", "dense.gguf"),
    ("tiny", "Q6_K", "k_quant.gguf"),
    ("tiny-qwen3moe", "Q4_0", "experts.gguf"),
    ("tiny-gpt-oss", "MXFP4", "sinks.gguf"),
    ("tiny", "BF16", "folder/"),
]


def written(folder, shape, kind, name, *words):
    path = os.path.join(folder, name)
    command = [sys.executable, os.path.join(SOURCE, "bench/make_random_model.py"), "--shape", shape, "--type", kind]
    return subprocess.run([*command, *words, path], capture_output=True, text=True), path


def digest(path):
    with open(os.path.join(path, "model.safetensors") if path.endswith("/") else path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class RandomModel(unittest.TestCase):
    def test_every_kind_runs(self):
        for shape, kind, name in MODELS:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                done, path = written(folder, shape, kind, name, "--context", "128")
                self.assertEqual(done.returncode, 0, done.stderr)
                command = [os.environ["PAGODA_BINARY"], "run", path, "--device", "cpu", "-p", "hello", "-n", "4",
                           "--ignore-eos", "--temperature", "0"]
                ran = subprocess.run(command, capture_output=True, text=True, errors="replace")
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertIn("4 new tokens", ran.stderr)

    def test_the_seed_decides(self):
        for shape, kind, name in MODELS:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                first = digest(written(folder, shape, kind, name)[1])
                self.assertEqual(digest(written(folder, shape, kind, name)[1]), first)
                self.assertNotEqual(digest(written(folder, shape, kind, name, "--seed", "2")[1]), first)

    def test_what_cannot_be_written_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            done, _ = written(folder, "tiny-gpt-oss", "Q6_K", "model.gguf")
            self.assertEqual(done.returncode, 1)
            self.assertIn("Q6_K has blocks of 256", done.stderr)
            done, _ = written(folder, "tiny-gpt-oss", "BF16", "folder/")
            self.assertEqual(done.returncode, 1)
            self.assertIn("folders are written of shapes without experts", done.stderr)


if __name__ == "__main__":
    python_tests.run(sys.modules[__name__])
