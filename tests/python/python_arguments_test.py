"""Arguments: unknown ones are errors with the nearest name, vLLM's that mean nothing are named once."""

import sys
import unittest
import warnings

from python_case import SMALL, STORIES

import python_tests
from pagoda import LLM, AsyncLLM, SamplingParams


class Arguments(unittest.TestCase):
    def test_an_unknown_argument_is_an_error_with_the_nearest_name(self):
        with self.assertRaisesRegex(TypeError, "'max_modellen'; did you mean 'max_model_len'"):
            LLM(STORIES, max_modellen=512)
        with self.assertRaisesRegex(TypeError, "'enable_prefix_cache'; did you mean 'enable_prefix_caching'"):
            AsyncLLM(STORIES, enable_prefix_cache=True)
        with self.assertRaisesRegex(TypeError, "'temprature'; did you mean 'temperature'"):
            SamplingParams(temprature=0.5)
        with self.assertRaisesRegex(TypeError, "there is no argument 'zzzz'$"):
            SamplingParams(zzzz=1)

    def test_arguments_of_vllm_that_mean_nothing_warn_once(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                LLM(STORIES, swap_space=4, enforce_eager=True, trust_remote_code=False, **SMALL).close()
                SamplingParams(detokenize=True)
        said = sorted(str(warning.message).split(" means")[0] for warning in caught)
        self.assertEqual(said, ["LLM: enforce_eager", "LLM: swap_space", "SamplingParams: detokenize"])

    def test_memory_of_a_gpu_is_not_bounded_in_silence_on_a_cpu(self):
        with self.assertWarnsRegex(UserWarning, "gpu_memory_utilization .*kv_cache_memory_bytes"):
            LLM(STORIES, device="cpu", gpu_memory_utilization=0.5, **SMALL).close()

    def test_values_out_of_range_name_their_argument(self):
        for name, value in (("block_size", 0), ("kv_cache_dtype", "int3"), ("device", "tpu"),
                            ("kv_eviction", "random"), ("max_num_batched_tokens", 4), ("tensor_parallel_size", 2),
                            ("gpu_memory_utilization", 7.0)):
            with self.subTest(name), self.assertRaisesRegex(ValueError, name):
                LLM(STORIES, **{**SMALL, name: value})

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
