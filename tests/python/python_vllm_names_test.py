"""vLLM's names beside generate and chat: the tokenizer, default parameters, dicts of prompts, and what is missing."""

import subprocess
import sys
import tempfile
import unittest

from python_case import SMALL, STORIES, template_file

import pagoda
import python_tests
import sampling_test
from pagoda import (
    LLM,
    AsyncLLM,
    GuidedDecodingParams,
    PoolingParams,
    SamplingParams,
    StructuredOutputsParams,
    TextPrompt,
    TokensPrompt,
)

MESSAGES = [{"role": "user", "content": "Tell me of Lily."}]
RENDERED = "user: Tell me of Lily.\nassistant:"


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.template = template_file()
        cls.llm = LLM(STORIES, chat_template=cls.template.name, max_model_len=256, **SMALL)
        cls.tokenizer = cls.llm.get_tokenizer()

    @classmethod
    def tearDownClass(cls):
        cls.llm.close()
        cls.template.close()

    def test_without_parameters_there_are_16_tokens(self):
        for prompt in ("Once upon a time", [1, 403, 407]):
            self.assertEqual(len(self.llm.generate(prompt)[0].outputs[0].token_ids), 16)
        output = self.llm.chat(MESSAGES)[0].outputs[0]
        self.assertLessEqual(len(output.token_ids), 16)
        self.assertEqual(vars(self.llm.get_default_sampling_params()), vars(SamplingParams()))

    def test_default_parameters_are_those_that_the_model_recommends(self):
        with tempfile.TemporaryDirectory() as folder:
            keys = [sampling_test.kv_float("general.sampling.temp", 0.7), sampling_test.kv_int("general.sampling.top_k", 1)]
            path = sampling_test.with_keys(f"{folder}/model.gguf", keys)
            with LLM(path, **SMALL) as llm:
                params = llm.get_default_sampling_params()
                self.assertEqual((params.temperature, params.top_k, params.max_tokens), (0.7, 1, 16))
                best = llm.generate("Once upon", SamplingParams(temperature=0.0))[0].outputs
                self.assertEqual(llm.generate("Once upon")[0].outputs, best)

    def test_the_prompt_of_a_chat_has_a_text(self):
        self.assertEqual(self.llm.chat(MESSAGES)[0].prompt, RENDERED)

    def test_the_tokenizer_renders_chats_as_the_server_does(self):
        text = self.tokenizer.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True)
        self.assertEqual(text, RENDERED)
        self.assertEqual(self.tokenizer.apply_chat_template(MESSAGES, tokenize=False), RENDERED[: -len("assistant:")])
        ids = self.tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True)
        self.assertEqual(ids, self.llm.chat(MESSAGES)[0].prompt_token_ids)
        greedy = SamplingParams(temperature=0.0)
        ours = self.llm.generate(TokensPrompt(prompt_token_ids=ids), greedy)[0].outputs[0].text
        self.assertEqual(ours, self.llm.chat(MESSAGES, greedy)[0].outputs[0].text)
        with self.assertRaisesRegex(TypeError, "return_tensors"):
            self.tokenizer.apply_chat_template(MESSAGES, return_tensors="pt")

    def test_a_chat_longer_than_the_context_is_rendered(self):
        long = [{"role": "user", "content": "Tell me of Lily. " * 500}]
        self.assertGreater(len(self.tokenizer.apply_chat_template(long)), 10 * self.llm.max_model_len)

    def test_a_model_without_a_template_says_so(self):
        with LLM(STORIES, **SMALL) as plain, self.assertRaisesRegex(ValueError, "no chat template"):
            plain.get_tokenizer().apply_chat_template(MESSAGES)

    def test_the_tokenizer_has_names_of_transformers(self):
        ids = self.tokenizer.encode("Once upon")
        encoded = self.tokenizer("Once upon")
        self.assertEqual((encoded.input_ids, encoded["attention_mask"]), (ids, [1] * len(ids)))
        self.assertEqual(self.tokenizer(["Once upon", "Once"])["input_ids"], [ids, self.tokenizer.encode("Once")])
        self.assertEqual(self.tokenizer.batch_decode([ids], skip_special_tokens=True), ["Once upon"])
        # Figures of the model's file.
        self.assertEqual((self.tokenizer.bos_token_id, self.tokenizer.eos_token_id), (1, 2))
        self.assertEqual((self.tokenizer.bos_token, self.tokenizer.eos_token), ("<s>", "</s>"))
        self.assertEqual((self.tokenizer.vocab_size, len(self.tokenizer)), (512, 512))
        self.assertEqual(self.tokenizer.all_special_ids, [1, 2])
        self.assertEqual(self.tokenizer.get_vocab()["</s>"], 2)
        self.assertEqual(self.tokenizer.model_max_length, 256)
        with self.assertRaisesRegex(AttributeError, "'Tokenizer' has no attribute 'pad_token_id': prompts are never"):
            self.tokenizer.pad_token_id
        for call in (lambda: self.tokenizer.encode(5), lambda: self.tokenizer(5), lambda: self.tokenizer([5])):
            with self.assertRaisesRegex(TypeError, "^text: is 5"):
                call()
        with self.assertRaisesRegex(TypeError, "^conversation: is 'hi'"):
            self.tokenizer.apply_chat_template("hi")

    def test_names_that_are_missing_say_why(self):
        for name in ("beam_search", "score", "classify", "llm_engine", "collective_rpc", "sleep"):
            with self.subTest(name), self.assertRaisesRegex(AttributeError, f"'LLM' has no attribute '{name}': ."):
                getattr(self.llm, name)
        with self.assertRaisesRegex(AttributeError, "'LLM' has no attribute 'nothing'$"):
            self.llm.nothing
        self.assertFalse(hasattr(AsyncLLM, "score") or hasattr(self.llm, "score"))

    def test_prompts_are_dicts_by_name(self):
        greedy = SamplingParams(temperature=0.0, max_tokens=4)
        text = self.llm.generate(TextPrompt(prompt="Once upon"), greedy)[0]
        ids = self.llm.generate(TokensPrompt(prompt_token_ids=self.tokenizer.encode("Once upon")), greedy)[0]
        self.assertEqual(text.outputs, ids.outputs)
        self.assertEqual((text.prompt, ids.prompt), ("Once upon", None))

    def test_structured_outputs_have_vllm_s_classes(self):
        for name, form in (("structured_outputs", StructuredOutputsParams(choice=[" upon", " there"])),
                           ("guided_decoding", GuidedDecodingParams(regex="[ ](upon|there)"))):
            with self.subTest(name):
                text = self.llm.generate("Once", SamplingParams(**{name: form}))[0].outputs[0].text
                self.assertIn(text, ("upon", "there", " upon", " there"))
        with self.assertRaisesRegex(ValueError, "regex and choice"):
            StructuredOutputsParams(regex="a", choice=["a"])
        with self.assertRaisesRegex(ValueError, "no form"):
            StructuredOutputsParams()

    def test_pooling_parameters_are_taken_where_they_change_nothing(self):
        plain = self.llm.embed("Once")[0].outputs.embedding
        self.assertEqual(self.llm.embed("Once", pooling_params=PoolingParams(normalize=True))[0].outputs.embedding, plain)
        last = self.tokenizer.encode("Once upon a time there was")[-3:]
        cut = PoolingParams(truncate_prompt_tokens=3)
        whole = {"prompt_token_ids": self.tokenizer.encode("Once upon a time there was")}
        self.assertEqual(self.llm.embed(whole, pooling_params=cut)[0].outputs.embedding,
                         self.llm.embed({"prompt_token_ids": last})[0].outputs.embedding)
        with self.assertRaisesRegex(ValueError, "truncate_prompt_tokens: is -2"):
            PoolingParams(truncate_prompt_tokens=-2)
        with self.assertRaisesRegex(TypeError, "dimensions is not supported: vectors"):
            PoolingParams(dimensions=32)
        with self.assertRaisesRegex(ValueError, "length 1"):
            PoolingParams(normalize=False)
        with self.assertRaisesRegex(ValueError, "pooling_task: is 'classify'"):
            self.llm.encode("Once", pooling_task="classify")

    def test_modules_have_vllm_s_names(self):
        script = (
            "from pagoda.sampling_params import GuidedDecodingParams, SamplingParams, StructuredOutputsParams\n"
            "from pagoda.inputs import PromptType, TextPrompt, TokensPrompt\n"
            "from pagoda.outputs import CompletionOutput, RequestOutput\n"
            "from pagoda.pooling_params import PoolingParams\n"
        )
        subprocess.run([sys.executable, "-s", "-c", script], check=True)
        for name in pagoda.__all__:
            self.assertTrue(hasattr(pagoda, name), name)


if __name__ == "__main__":
    python_tests.run(sys.modules[__name__])
