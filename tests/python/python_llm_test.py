"""LLM: the same answers as the server's, what outputs hold, threads and Ctrl-C."""

import contextlib
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import unittest

from python_case import SMALL, SOURCE, STORIES, template_file

import pagoda
import python_tests
import served
from pagoda import LLM, SamplingParams

PROMPT = "Once upon a time, there was a little"
MESSAGES = [{"role": "user", "content": "Tell me of Lily."}]


class SameAsTheServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.template = template_file()
        cls.llm = LLM(STORIES, chat_template=cls.template.name, **SMALL)
        cls.server = served.Served(STORIES, "--chat-template", cls.template.name)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.llm.close()
        cls.template.close()

    def ask(self, path, **body):
        status, text = self.server.post(path, {"return_token_ids": True, **body})[:2]
        self.assertEqual(status, 200, text)
        return json.loads(text) if isinstance(text, (str, bytes)) else text

    def test_a_completion_has_the_same_tokens_and_log_probabilities(self):
        params = SamplingParams(temperature=0.8, top_p=0.9, seed=7, max_tokens=40, logprobs=2)
        ours = self.llm.generate(PROMPT, params)[0].outputs[0]
        theirs = self.ask("/v1/completions", prompt=PROMPT, **params.fields(is_chat=False))["choices"][0]
        self.assertEqual(ours.text, theirs["text"])
        self.assertEqual(ours.token_ids, theirs["token_ids"])
        self.assertEqual([entry[token].logprob for entry, token in zip(ours.logprobs, ours.token_ids)],
                         theirs["logprobs"]["token_logprobs"])
        self.assertEqual(ours.finish_reason, theirs["finish_reason"])

    def test_several_outputs_and_stop_strings_are_the_same(self):
        params = SamplingParams(temperature=1.0, seed=3, n=3, max_tokens=60, stop=["."])
        ours = self.llm.generate([PROMPT], params)[0]
        theirs = self.ask("/v1/completions", prompt=PROMPT, **params.fields(is_chat=False))["choices"]
        self.assertEqual([(o.text, o.token_ids, o.stop_reason) for o in ours.outputs],
                         [(c["text"], c["token_ids"], c["stop_reason"]) for c in theirs])

    def test_a_chat_has_the_same_text(self):
        params = SamplingParams(temperature=0.0, max_tokens=30)
        ours = self.llm.chat(MESSAGES, params)[0]
        theirs = self.ask("/v1/chat/completions", messages=MESSAGES, **params.fields(is_chat=True))
        self.assertEqual(ours.outputs[0].text, theirs["choices"][0]["message"]["content"])
        self.assertEqual(ours.outputs[0].token_ids, theirs["choices"][0]["token_ids"])
        self.assertEqual(ours.prompt_token_ids, theirs["prompt_token_ids"])

    def test_an_embedding_has_the_same_numbers(self):
        theirs = self.ask("/v1/embeddings", input=PROMPT)["data"][0]["embedding"]
        self.assertEqual(self.llm.embed(PROMPT)[0].outputs.embedding, theirs)
        self.assertEqual(self.llm.encode(PROMPT)[0].outputs.data, theirs)



class Bars(unittest.TestCase):
    """vLLM's `use_tqdm`."""

    @classmethod
    def setUpClass(cls):
        cls.llm = LLM(STORIES, **SMALL)

    @classmethod
    def tearDownClass(cls):
        cls.llm.close()

    def generate(self, prompts, is_terminal=True, **options):
        shown = io.StringIO()
        shown.isatty = lambda: is_terminal
        with contextlib.redirect_stderr(shown):
            self.llm.generate(prompts, SamplingParams(temperature=0, max_tokens=5), **options)
        return shown.getvalue()

    def test_a_terminal_has_a_bar_of_several_prompts(self):
        shown = self.generate([PROMPT] * 3)
        self.assertRegex(shown, r"\r\[#{30}\] 3/3 prompts, [\d.]+ tok/s \n$")

    def test_nothing_is_shown_where_nobody_looks_or_wants_it(self):
        self.assertEqual(self.generate([PROMPT] * 3, is_terminal=False), "")
        self.assertEqual(self.generate([PROMPT] * 3, use_tqdm=False), "")
        self.assertEqual(self.generate(PROMPT), "")

    def test_tqdm_itself_is_told(self):
        told = []

        class Bar:
            def __init__(self, total, desc):
                told.append(total)

            def update(self, count):
                told.append(count)

            def close(self):
                told.append("closed")

        self.assertEqual(self.generate([PROMPT] * 2, use_tqdm=Bar), "")
        self.assertEqual(told, [2, 1, 1, "closed"])


class Outputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.llm = LLM(model=STORIES, enable_prefix_caching=True, max_model_len=512, **SMALL)

    @classmethod
    def tearDownClass(cls):
        cls.llm.close()

    def test_outputs_come_in_the_order_of_their_prompts(self):
        prompts = [PROMPT, "The dog", {"prompt": "A cat"}, {"prompt_token_ids": [1, 403, 407]}]
        greedy = SamplingParams(temperature=0.0, max_tokens=8)
        outputs = self.llm.generate(prompts, greedy)
        self.assertEqual([output.prompt for output in outputs], [PROMPT, "The dog", "A cat", None])
        self.assertEqual(outputs[3].prompt_token_ids, [1, 403, 407])
        for prompt, output in zip(prompts, outputs):
            self.assertEqual(self.llm.generate(prompt, greedy)[0].outputs, output.outputs)

    def test_the_second_time_the_prompt_is_cached_until_the_cache_is_emptied(self):
        self.llm.reset_prefix_cache()
        params = SamplingParams(temperature=0.0, max_tokens=4)
        counts = [self.llm.generate(PROMPT, params)[0].num_cached_tokens for _ in range(2)]
        length = len(self.llm.get_tokenizer().encode(PROMPT))
        self.assertEqual(counts, [0, length - 1])
        self.llm.reset_prefix_cache()
        self.assertEqual(self.llm.generate(PROMPT, params)[0].num_cached_tokens, 0)

    def test_prompt_log_probabilities_are_by_token(self):
        params = SamplingParams(temperature=0.0, max_tokens=1, prompt_logprobs=1, logprobs=0)
        output = self.llm.generate(PROMPT, params)[0]
        self.assertIsNone(output.prompt_logprobs[0])
        self.assertEqual(len(output.prompt_logprobs), len(output.prompt_token_ids))
        for token, scores in zip(output.prompt_token_ids[1:], output.prompt_logprobs[1:]):
            self.assertLessEqual(scores[token].logprob, 0)
            self.assertIn(1, [score.rank for score in scores.values()])
        self.assertAlmostEqual(output.outputs[0].cumulative_logprob,
                               output.outputs[0].logprobs[0][output.outputs[0].token_ids[0]].logprob)

    def test_without_max_tokens_an_output_fills_the_context(self):
        params = SamplingParams(temperature=0.0, max_tokens=None, ignore_eos=True)
        output = self.llm.generate(PROMPT, params)[0]
        self.assertEqual(len(output.prompt_token_ids) + len(output.outputs[0].token_ids), self.llm.max_model_len)
        self.assertEqual(output.outputs[0].finish_reason, "length")

    def test_the_tokenizer_goes_both_ways(self):
        tokenizer = self.llm.get_tokenizer()
        self.assertEqual(tokenizer.decode(tokenizer.encode(PROMPT), skip_special_tokens=True), PROMPT)

    def test_what_the_server_refuses_is_a_value_error(self):
        with self.assertRaisesRegex(ValueError, "max_tokens"):
            self.llm.generate(PROMPT, SamplingParams(max_tokens=5000))
        with self.assertRaisesRegex(ValueError, "chat template"):
            self.llm.chat(MESSAGES)
        with self.assertRaises(FileNotFoundError):
            LLM("/no/such/model.gguf")

    def test_a_closed_model_says_so(self):
        with LLM(STORIES, **SMALL) as other:
            pass
        with self.assertRaisesRegex(RuntimeError, "closed"):
            other.generate(PROMPT)


class SideBySide(unittest.TestCase):
    def test_two_models_answer_at_once_while_python_runs(self):
        params = SamplingParams(temperature=0.0, max_tokens=400, ignore_eos=True)
        models = [LLM(STORIES, **SMALL), LLM(STORIES, kv_cache_dtype="fp32", **SMALL)]
        alone = [llm.generate(PROMPT, params)[0].outputs[0].token_ids for llm in models]
        answers = [None, None]

        def ask(index):
            answers[index] = models[index].generate(PROMPT, params)[0].outputs[0].token_ids

        threads = [threading.Thread(target=ask, args=(index,)) for index in range(2)]
        for thread in threads:
            thread.start()
        seen = False
        for _ in itertools.count():
            seen = seen or all(llm._model.sequences_running > 0 for llm in models)
            if not any(thread.is_alive() for thread in threads):
                break
        self.assertTrue(seen, "this thread ran while both models computed")
        self.assertEqual(answers, alone)

    def test_ctrl_c_ends_generate_and_the_model_goes_on(self):
        script = (
            "import sys, threading, os, signal, time\n"
            "from pagoda import LLM, SamplingParams\n"
            f"llm = LLM({STORIES!r}, kv_cache_memory_bytes='512MiB', max_model_len=100000, threads=1)\n"
            "def press():\n"
            "    while llm._model.sequences_running == 0: time.sleep(0.01)\n"
            "    os.kill(os.getpid(), signal.SIGINT)\n"
            "threading.Thread(target=press).start()\n"
            "try:\n"
            "    llm.generate('Once', SamplingParams(max_tokens=90000, ignore_eos=True))\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted')\n"
            "print(len(llm.generate('Once', SamplingParams(max_tokens=3, ignore_eos=True))[0].outputs[0].token_ids))\n"
        )
        ran = subprocess.run([sys.executable, "-s", "-c", script], capture_output=True, text=True, timeout=200)
        self.assertEqual(ran.stdout, "interrupted\n3\n", ran.stderr)


class Notebook(unittest.TestCase):
    def test_the_example_runs(self):
        with open(os.path.join(SOURCE, "docs/examples/prefix_cache.ipynb")) as file:
            cells = json.load(file)["cells"]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            names = {}
            for cell in cells:
                if cell["cell_type"] == "code":
                    exec("".join(cell["source"]), names)
        names["llm"].close()
        rows = [line.split(" tokens cached: ") for line in printed.getvalue().splitlines() if " cached: " in line]
        self.assertEqual([text for _, text in rows[:2]], [text for _, text in rows[2:]])
        self.assertIn("differs", printed.getvalue())


class Program(unittest.TestCase):
    def test_the_module_serve_is_the_program_s_serve(self):
        ran = subprocess.run([sys.executable, "-s", "-m", "pagoda.serve", "--help"], capture_output=True, text=True)
        theirs = subprocess.run([os.environ["PAGODA_BINARY"], "serve", "--help"], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(ran.stdout, theirs.stdout)

    def test_the_module_serve_serves(self):
        with subprocess.Popen([sys.executable, "-s", "-m", "pagoda.serve", STORIES, "--port", "0",
                               "--kv-cache-memory-bytes", "64MiB"], stdout=subprocess.PIPE, text=True) as server:
            try:
                self.assertTrue(any("try: curl" in line for line in server.stdout))
            finally:
                server.send_signal(signal.SIGTERM)
            self.assertEqual(server.wait(), 0)

    def test_versions_agree(self):
        shown = subprocess.run([os.environ["PAGODA_BINARY"], "--version"], capture_output=True, text=True).stdout
        self.assertIn(pagoda.__version__, shown)


if __name__ == "__main__":
    python_tests.run(sys.modules[__name__])
