"""What a model recommends (general.sampling.* of its file) applies to requests that are silent, and to no
others; flags of vLLM about the model."""

import os
import struct
import subprocess
import sys
import tempfile
import unittest

import served

ALIGNMENT = 32


def kv_float(key, value):
    return struct.pack("<Q", len(key)) + key.encode() + struct.pack("<If", 6, value)


def kv_int(key, value):
    return struct.pack("<Q", len(key)) + key.encode() + struct.pack("<Ii", 5, value)


def kv_text(key, value):
    return struct.pack("<Q", len(key)) + key.encode() + struct.pack("<IQ", 8, len(value)) + value.encode()


def with_keys(path, pairs):
    """The story model with more metadata, in front of its own. A text fills up to the alignment, so that
    the tensors stay aligned."""
    with open(served.STORIES, "rb") as file:
        model = file.read()
    magic, version, tensors, pairs_before = struct.unpack_from("<4sIQQ", model)
    fill_key = "test.fill"
    text_bytes = -(len(b"".join(pairs)) + 8 + len(fill_key) + 4 + 8) % ALIGNMENT
    fill = struct.pack("<Q", len(fill_key)) + fill_key.encode() + struct.pack("<IQ", 8, text_bytes) + b"x" * text_bytes
    header = struct.pack("<4sIQQ", magic, version, tensors, pairs_before + len(pairs) + 1)
    with open(path, "wb") as file:
        file.write(header + b"".join(pairs) + fill + model[len(header):])
    return path


PROMPT = {"prompt": "Once upon a time, there was a", "max_tokens": 24}


class Sampling(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="pagoda-sampling-")
        cls.addClassCleanup(cls.folder.cleanup)
        # Of the likeliest token alone: whatever the seed, that is greedy.
        cls.greedy = with_keys(os.path.join(cls.folder.name, "greedy.gguf"), [
            kv_float("general.sampling.temp", 0.75), kv_int("general.sampling.top_k", 1)])
        cls.warm = with_keys(os.path.join(cls.folder.name, "warm.gguf"), [kv_float("general.sampling.temp", 0.5)])

    def text(self, server, **fields):
        status, reply = server.post("/v1/completions", {**PROMPT, **fields})
        self.assertEqual(status, 200, reply)
        return reply["choices"][0]["text"]

    def test_a_silent_request_gets_the_models_and_an_explicit_one_its_own(self):
        with served.Served(self.greedy) as server:
            self.assertIn("temperature 0.75, top_k 1 (the model's file)", server.greeting)
            self.assertEqual(server.snapshot()["sampling_defaults"], {"temperature": 0.75, "top_k": 1})
            greedy = self.text(server, temperature=0)
            for seed in range(4):
                self.assertEqual(self.text(server, seed=seed), greedy)
            own = {self.text(server, seed=seed, temperature=1.5, top_k=0) for seed in range(4)}
            self.assertGreater(len(own), 1)
            self.assertEqual(len({self.text(server, seed=seed, temperature=1.5) for seed in range(4)}), 1,
                             "top_k is still the model's")
            self.assertGreater(len({self.text(server, seed=seed, top_k=-1) for seed in range(6)}), 1)
            chat = {"messages": [{"role": "user", "content": "x"}]}
            self.assertEqual(server.post("/v1/chat/completions", chat)[0], 400, "no template, and no crash")

    def test_the_same_seed_and_values_said_aloud_give_the_same_answer(self):
        with served.Served(self.warm) as server:
            for seed in range(3):
                silent = self.text(server, seed=seed)
                self.assertEqual(silent, self.text(server, seed=seed, temperature=0.5))
        with served.Served(self.warm, "--generation-config", "none") as server:
            self.assertNotIn("where a request does not say", server.greeting)
            for seed in range(3):
                self.assertEqual(self.text(server, seed=seed), self.text(server, seed=seed, temperature=1))
        override = '{"temperature": 0, "min_p": 0.1}'
        with served.Served(self.warm, "--override-generation-config", override) as server:
            self.assertEqual(server.snapshot()["sampling_defaults"], {"temperature": 0, "min_p": 0.1})
            self.assertEqual(self.text(server, seed=1), self.text(server, seed=2))

    def test_chats_and_log_probabilities(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
            template.write(served.STORY_TEMPLATE)
            template.flush()
            with served.Served(self.greedy, "--chat-template", template.name) as server:
                chat = {"messages": [{"role": "user", "content": "Tom had a dog."}], "max_tokens": 12,
                        "logprobs": True, "top_logprobs": 2, "n": 2}
                silent = server.post("/v1/chat/completions", chat)[1]
                loud = server.post("/v1/chat/completions", {**chat, "temperature": 0})[1]
                self.assertEqual(len(silent["choices"]), 2)
                for one, other in zip(silent["choices"], loud["choices"]):
                    self.assertEqual(one["message"], other["message"])
                    self.assertEqual(one["logprobs"], other["logprobs"], "log-probabilities know no sampling")

    def test_run_takes_what_the_file_says(self):
        def run(*flags):
            done = subprocess.run([served.BINARY, "run", "-m", self.warm, "-p", "Once", "-n", "12", *flags],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done
        self.assertIn("seed ", run().stderr)
        self.assertEqual(run("--seed", "5").stdout, run("--seed", "5", "--temp", "0.5").stdout)
        self.assertNotIn("seed ", run("--generation-config", "none").stderr, "greedy, as before")
        self.assertNotIn("seed ", run("--temp", "0").stderr)

    def test_the_default_model_has_its_authors_recommendation(self):
        served.require_default_model(self)
        with served.Served(served.DEFAULT_MODEL, "-c", "512") as server:
            self.assertIn("temperature 0.2, top_p 0.9 (its authors' recommendation)", server.greeting)
            chat = {"messages": [{"role": "user", "content": "What is the capital of France?"}], "max_tokens": 16,
                    "seed": 3}
            silent = server.post("/v1/chat/completions", chat)[1]["choices"][0]["message"]
            loud = server.post("/v1/chat/completions", {**chat, "temperature": 0.2, "top_p": 0.9})[1]
            self.assertEqual(silent, loud["choices"][0]["message"])

    def test_another_model_gives_tokenizer_and_chat_template(self):
        other = with_keys(os.path.join(self.folder.name, "other.gguf"),
                          [kv_text("tokenizer.chat_template", served.STORY_TEMPLATE)])
        chat = {"messages": [{"role": "user", "content": "Tom had a dog."}], "max_tokens": 4}
        with served.Served(served.STORIES) as server:
            self.assertEqual(server.post("/v1/chat/completions", chat)[0], 400)
        with served.Served(served.STORIES, "--tokenizer", other) as server:
            self.assertEqual(server.post("/v1/chat/completions", chat)[0], 200)
        served.require_default_model(self)
        done = subprocess.run([served.BINARY, "serve", served.STORIES, "--tokenizer", served.DEFAULT_MODEL,
                               "--port", "0"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("the tokenizer has 49152 tokens, the model's embedding only 512", done.stderr)

    def test_flags_that_make_no_sense_are_refused_by_name(self):
        for flags, words in ((["--generation-config", "/some/folder"], "--generation-config"),
                             (["--override-generation-config", "{"], "--override-generation-config"),
                             (["--override-generation-config", '{"max_new_tokens": 5}'], "max_new_tokens"),
                             (["--dtype", "int8"], "--dtype"),
                             (["--revision", "v1"], "--revision v1")):
            done = subprocess.run([served.BINARY, "serve", self.warm, "--port", "0", *flags], capture_output=True,
                                  text=True, timeout=60)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)
        for flags in (["--dtype", "float32"], ["--dtype", "auto", "--trust-remote-code"]):
            with served.Served(self.warm, *flags) as server:
                self.assertEqual("does nothing" in server.stderr(), "--trust-remote-code" in flags)

    def test_weights_are_rounded_to_another_type_of_floats(self):
        body = {"prompt": "Once upon a time", "max_tokens": 40, "temperature": 0, "seed": 1, "logprobs": 1}
        answers = {}
        for dtype in ("auto", "float32", "half", "bfloat16"):
            with served.Served(self.warm, "--dtype", dtype, "--quantized-cache-size", "0") as server:
                said = server.stderr()
                answers[dtype] = server.post("/v1/completions", body)[1]["choices"][0]
            self.assertEqual("rounded to" in said, dtype in ("half", "bfloat16"), said)
        self.assertEqual(answers["float32"], answers["auto"])
        self.assertEqual(answers["half"]["text"], answers["auto"]["text"], "within the rounding")
        self.assertEqual(len({str(answer["logprobs"]) for answer in answers.values()}), 3)
        quantised = os.path.join(served.SOURCE, "tests/data/models/arch_gpt_oss.gguf")
        with served.Served(quantised, "--dtype", "bfloat16") as server:
            self.assertIn("--dtype bfloat16: the weights are quantised (MXFP4) and stay so", server.stderr())


if __name__ == "__main__":
    served.run(sys.modules[__name__])
