"""Arguments: unknown ones are errors with the nearest name, vLLM's that mean nothing are named once."""

import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings

from python_case import SMALL, STORIES

import python_tests
from pagoda import LLM, AsyncLLM, SamplingParams

SCRIPTED = STORIES.replace("stories260K", "scripted_calls")  # another vocabulary


class Arguments(unittest.TestCase):
    def test_an_unknown_argument_is_an_error_with_the_nearest_name(self):
        with self.assertRaisesRegex(TypeError, "'max_modellen'; did you mean 'max_model_len'"):
            LLM(STORIES, max_modellen=512)
        with self.assertRaisesRegex(TypeError, "'enable_prefix_cache'; did you mean 'enable_prefix_caching'"):
            AsyncLLM(STORIES, enable_prefix_cache=True)
        with self.assertRaisesRegex(TypeError, "'temprature'; did you mean 'temperature'"):
            SamplingParams(temprature=0.5)
        for name in ("zzzz", "tokens", "model_path", "cache"):
            with self.subTest(name), self.assertRaisesRegex(TypeError, f"there is no argument '{name}'$"):
                LLM(STORIES, **{name: 1})

    def test_arguments_of_vllm_that_are_not_here_say_why(self):
        for name, value, why in (("enable_lora", True, "adapter"), ("hf_overrides", {"rope_theta": 1}, "serve"),
                                 ("kv_offloading_size", 4, "--kv-host-size"),
                                 ("logits_processors", [print], "logit_bias")):
            with self.subTest(name), self.assertRaisesRegex(TypeError, f"LLM: {name} is not supported: .*{why}"):
                LLM(STORIES, **{name: value})
        with self.assertRaisesRegex(TypeError, "best_of is not supported: n outputs"):
            SamplingParams(best_of=2)
        with self.assertRaisesRegex(ValueError, "quantization: awq is not supported: AWQ"):
            LLM(STORIES, quantization="awq")

    def test_values_that_ask_for_nothing_are_taken_in_silence(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            LLM(STORIES, enable_lora=False, hf_overrides={}, quantization=None, chat_template=None, swap_space=0,
                logits_processors=[], dtype="auto", tensor_parallel_size=1, **SMALL).close()
            SamplingParams(best_of=1, logits_processors=None, guided_decoding=None)

    def test_arguments_of_vllm_that_mean_nothing_warn_once(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                LLM(STORIES, swap_space=4, enforce_eager=True, trust_remote_code=False, **SMALL).close()
                AsyncLLM(STORIES, seed=3, **SMALL).close()
                SamplingParams(detokenize=True)
        said = sorted(str(warning.message).split(" means")[0] for warning in caught)
        self.assertEqual(said, ["AsyncLLM: seed", "LLM: enforce_eager", "LLM: swap_space", "SamplingParams: detokenize"])
        self.assertEqual({warning.filename for warning in caught}, {__file__})

    def test_memory_of_a_gpu_is_not_bounded_in_silence_on_a_cpu(self):
        script = f"import pagoda; pagoda.LLM({STORIES!r}, device='cpu', gpu_memory_utilization=0.5, **{SMALL})"
        ran = subprocess.run([sys.executable, "-s", "-c", script], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stderr, "gpu_memory_utilization bounds nothing on a CPU; kv_cache_memory_bytes or num_gpu")
        self.assertEqual(ran.stderr.count("bounds nothing"), 1, ran.stderr)

    def test_a_number_of_blocks_bounds_the_cache(self):
        with LLM(STORIES, device="cpu", num_gpu_blocks_override=8, block_size=16, threads=1) as llm:
            self.assertEqual(llm._model.kv_cache_tokens, 8 * 16)
            with self.assertRaisesRegex(ValueError, "the context holds"):
                llm.generate([[1] + [403] * 150])

    def test_weights_are_rounded_to_dtype(self):
        greedy = SamplingParams(temperature=0.0, logprobs=1, max_tokens=1)
        with tempfile.TemporaryDirectory() as cache, unittest.mock.patch.dict(os.environ, XDG_CACHE_HOME=cache):
            scores = []
            for dtype in ("float32", "bfloat16"):
                with LLM(STORIES, dtype=dtype, **SMALL) as llm:
                    scores.append(llm.generate("Once", greedy)[0].outputs[0].cumulative_logprob)
        self.assertNotEqual(scores[0], scores[1])

    def test_variables_of_the_server_are_read(self):
        with unittest.mock.patch.dict(os.environ, PAGODA_MAX_MODEL_LEN="100"):
            with LLM(STORIES, **SMALL) as llm:
                self.assertEqual(llm.max_model_len, 100)
            with LLM(STORIES, max_model_len=50, **SMALL) as llm:
                self.assertEqual(llm.max_model_len, 50)
        with unittest.mock.patch.dict(os.environ, PAGODA_MAX_MODEL_LEN="abc"):
            with self.assertRaisesRegex(ValueError, "PAGODA_MAX_MODEL_LEN: is 'abc'"):
                LLM(STORIES, **SMALL)

    def test_drafts_are_configured_as_in_vllm(self):
        greedy = SamplingParams(temperature=0.0, max_tokens=40)
        with LLM(STORIES, speculative_config={"method": "none"}, **SMALL) as llm:
            plain = llm.generate("Once upon a time", greedy)[0].outputs[0].token_ids
        for config in ({"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3}, "tree,suffix", {},
                       {"model": STORIES, "num_speculative_tokens": 3}):
            with self.subTest(config), LLM(STORIES, speculative_config=config, **SMALL) as llm:
                self.assertEqual(llm.generate("Once upon a time", greedy)[0].outputs[0].token_ids, plain)
        for config, message in (({"method": "eagle3"}, "speculative_config: method eagle3 is not supported here"),
                                ({"a": 1}, "speculative_config: method is missing"),
                                ({"method": "ngram", "num_speculative_tokens": 64}, "expected 1 to 63"),
                                ({"model": SCRIPTED}, "draft model: .*the same ones")):
            with self.subTest(config), self.assertRaisesRegex(ValueError, message):
                LLM(STORIES, speculative_config=config, **SMALL)
        with self.assertRaisesRegex(TypeError, "^speculative_config: is 3"):
            LLM(STORIES, speculative_config=3)

    def test_values_of_a_wrong_type_name_their_argument(self):
        for name, value in (("max_model_len", "4k"), ("block_size", "x"), ("threads", "two"), ("device", 3),
                            ("kv_cache_memory_bytes", 1.5), ("enable_prefix_caching", "yes"), ("tokenizer", 1),
                            ("gpu_memory_utilization", "half"), ("num_gpu_blocks_override", 1.5)):
            with self.subTest(name), self.assertRaisesRegex(TypeError, f"^{name}: is {value!r} .*expected"):
                LLM(STORIES, **{name: value})
        with self.assertRaisesRegex(ValueError, "max_model_len: is -1"):
            LLM(STORIES, max_model_len=-1)
        with self.assertRaisesRegex(TypeError, "^model: is 5"):
            LLM(5)

    def test_parameters_are_checked_where_they_are_made(self):
        for name, value in (("temperature", "hot"), ("stop", 3), ("max_tokens", 1.5), ("logprobs", True),
                            ("stop_token_ids", "ab"), ("ignore_eos", "no"), ("structured_outputs", "json")):
            with self.subTest(name), self.assertRaisesRegex(TypeError, f"^{name}: is {value!r}"):
                SamplingParams(**{name: value})
        for name, value in (("temperature", -1), ("top_p", 0), ("n", 0), ("max_tokens", 0), ("min_tokens", 17),
                            ("repetition_penalty", 0), ("presence_penalty", 3), ("min_p", float("nan"))):
            with self.subTest(name), self.assertRaisesRegex(ValueError, f"^{name}: is {value!r}"):
                SamplingParams(**{name: value})

    def test_prompts_and_parameters_of_a_wrong_type_are_named(self):
        with LLM(STORIES, **SMALL) as llm:
            for words, named in ((("a", {"max_tokens": 3}), "sampling_params"), (("a", [3]), "sampling_params"),
                                 ((5,), "prompts"), (([5.5],), "prompt"), (([[1, "b"]],), "prompt")):
                with self.subTest(words), self.assertRaisesRegex(TypeError, f"^{named}: is "):
                    llm.generate(*words)
            with self.assertRaisesRegex(TypeError, "^messages: is 'hi'"):
                llm.chat("hi")
            with self.assertRaisesRegex(ValueError, 'neither "prompt" nor "prompt_token_ids"'):
                llm.generate({"cache_salt": "x"})
            with self.assertRaisesRegex(ValueError, "multi_modal_data"):
                llm.generate({"prompt": "a", "multi_modal_data": {"image": 1}})
            with self.assertRaisesRegex(TypeError, "lora_request is not supported"):
                llm.generate("a", lora_request=1)

    def test_values_out_of_range_name_their_argument(self):
        for name, value in (("block_size", 0), ("kv_cache_dtype", "int3"), ("device", "tpu"),
                            ("kv_eviction", "random"), ("max_num_batched_tokens", 1), ("tensor_parallel_size", 2),
                            ("gpu_memory_utilization", 7.0)):
            with self.subTest(name), self.assertRaisesRegex(ValueError, name):
                LLM(STORIES, **{**SMALL, name: value})
        with self.assertRaises(ValueError) as refused:
            LLM(STORIES, kv_cache_dtype="fp7")
        self.assertEqual(str(refused.exception).count("kv_cache_dtype"), 1)

    def test_parameters_can_be_copied_and_shown(self):
        params = SamplingParams(temperature=0.5, stop=["."])
        self.assertEqual(vars(params.clone()), vars(params))
        self.assertIn("temperature=0.5", repr(params))

    def test_as_many_parameters_as_prompts(self):
        with LLM(STORIES, **SMALL) as llm:
            with self.assertRaisesRegex(ValueError, "2 entries for 1"):
                llm.generate(["Once"], [SamplingParams(), SamplingParams()])
            lengths = [SamplingParams(max_tokens=count, ignore_eos=True) for count in (2, 5)]
            outputs = llm.generate(["Once", "The"], lengths)
            self.assertEqual([len(output.outputs[0].token_ids) for output in outputs], [2, 5])


if __name__ == "__main__":
    python_tests.run(sys.modules[__name__])
