#!/usr/bin/env python3
"""Writes hf_tokenizers/NAME/: small tokenizers in Hugging Face's format, trained and run by `tokenizers`.

tokenizer.json is what the library saves, tokenizer_config.json what a model's folder has beside it, and
expected.json the ids and the decoded text of every text of a table. Nothing of Pagoda is used.

    python make_hf_tokenizers.py [DIRECTORY]      (default: the folder of this script)

Needs tokenizers; reads text/wikitext2-test.txt. Seconds.
"""

import json
import pathlib
import sys

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

from hf_regexes import CL100K, DEEPSEEK_LLM, DEEPSEEK_V3, O200K, QWEN2

MARK = "\u2581"
BYTES = [f"<0x{i:02X}>" for i in range(256)]

TEXTS = [
    "", " ", "  ", "\n", "\n\n\n", " \n ", "a", " a", "  a", "a ", "Hello, world!", " Hello  world   !",
    "The river's bank isn't WE'LL they'd I'M", "12345 6 78 ٣٤ Ⅷ ½", "line one\nline two\r\n\r\nline three\t\tend",
    "naïve café Ünïcode ÅÄÖ ſ ﬁ", "Привет, мир! Как дела?", "日本語のテキストと漢字。", "中文文本，没有空格。", "한국어 텍스트입니다",
    "مرحبا بالعالم", "नमस्ते दुनिया", "😀 👩‍👩‍👧‍👦 🇩🇪 é e\u0301", "\u200b\ufeff\u00a0x\u3000y", "a\u2581b \u2581 \u2581\u2581c",
    "def f(x):\n    return x ** 2  # comment\n", "https://example.org/a?b=c&d=%20", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "<|user|>hi<|end|>\n<|assistant|>", "<|user|>   hi <|end|>  there<|end|>", "x<|user|>", "<s>start</s> and more",
    "<s> start", "text <tool>call</tool> text", "<tool> <tool>", "<unk> <0x41> <0xZZ>", "<|us", "\x00\x01\x7f",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈 𠜎", "word " * 30, "In 1923 , the construction of the house began .",
    "\ta\t\tb  \n  c\r\n\u3000\u3000d \u2028 e   ", "1234567 8.90,12 \u0661\u0662 \u00bd\u00b2 x1y22z333",
    "the house  house houses", "a  <|user|>  b\n<|end|>\n\u2003<|user|> <|end|>c",
    "one of the  most   of\nthe", "cost \u20acuro 5 \u20acu \u20ac",
]


def corpus(folder):
    text = (folder / "text" / "wikitext2-test.txt").read_text()[:120000]
    more = ["Привет, мир! Как дела?", "日本語のテキスト", "naïve café", "def f(x):\n    return x\n\n\n"] * 20
    return text.splitlines(keepends=True) + more


def specials(*texts, **flags):
    return [AddedToken(text, normalized=False, special=True, **flags) for text in texts]


def byte_level(lines, split, size=420, **model):
    made = Tokenizer(models.BPE(**model))
    made.pre_tokenizer = split
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return made


def regex(*patterns):
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
        + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def byte_fallback(lines, normalizer, splitter, decoder, size=700, **model):
    made = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True, **model))
    if normalizer:
        made.normalizer = normalizer
    if splitter:
        made.pre_tokenizer = splitter
    made.decoder = decoder
    made.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<unk>", "<s>", "</s>"] + BYTES, limit_alphabet=80,
        show_progress=False))
    # The trainer makes special tokens of the bytes, which text must not become.
    data = json.loads(made.to_str())
    data["added_tokens"] = [token for token in data["added_tokens"] if token["content"] not in BYTES]
    return Tokenizer.from_str(json.dumps(data))


def unigram(lines, splitter, byte_tokens, size=500):
    made = Tokenizer(models.Unigram())
    made.pre_tokenizer = splitter
    made.decoder = decoders.Metaspace(prepend_scheme=splitter.prepend_scheme)
    made.train_from_iterator(lines, trainers.UnigramTrainer(
        vocab_size=size, unk_token="<unk>", special_tokens=["<unk>", "<s>", "</s>"],
        show_progress=False))
    # Pieces over marks, which words that are cut at marks never become, and one with a character
    # that is no piece alone.
    data = json.loads(made.to_str())
    data["model"]["vocab"] += [[MARK * 2, -2.0], [f"{MARK}of{MARK}the", -2.5], ["\u20acuro", -20.0]]
    made = Tokenizer.from_str(json.dumps(data))
    if byte_tokens:
        data["model"]["vocab"] += [[text, -20.0] for text in BYTES]
        data["model"]["byte_fallback"] = True
        made = Tokenizer.from_str(json.dumps(data))
        made.decoder = decoders.Sequence(LLAMA_DECODER)
    return made


def frame(made, before, after=""):
    ids = [(text, made.token_to_id(text)) for text in (before, after) if text]
    made.post_processor = processors.TemplateProcessing(
        single=" ".join(part for part in (before, "$A", after) if part), special_tokens=ids)


LLAMA_DECODER = [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(),
                 decoders.Strip(" ", 1, 0)]


def make(folder):
    lines = corpus(folder)
    tags = ("<|user|>", "<|assistant|>", "<|end|>")

    made = byte_level(lines, regex(CL100K), ignore_merges=True)
    made.add_special_tokens(specials("<s>", "</s>", *tags))
    frame(made, "<s>")
    yield "llama3", made, {"bos_token": "<s>", "eos_token": {"content": "</s>"}}

    made = byte_level(lines, regex(QWEN2))
    made.add_special_tokens(specials(*tags))
    made.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("</tool>", normalized=False)])
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    yield "qwen2", made, {"eos_token": "<|end|>", "bos_token": None, "add_bos_token": False}

    made = byte_level(lines, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True))
    made.add_special_tokens(specials("<s>", "</s>"))
    frame(made, "<s>", "</s>")
    yield "gpt2", made, {"bos_token": "<s>", "eos_token": "</s>"}

    made = byte_level(lines, pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]))
    made.add_special_tokens(specials(*tags, rstrip=True))
    yield "digits", made, {"eos_token": "<|end|>"}

    made = byte_level(lines, regex(O200K))
    yield "gpt4o", made, {}

    # A word that no merges lead to: it is found whole, where it is a piece.
    made = byte_level(lines, regex(O200K), ignore_merges=True)
    data = json.loads(made.to_str())
    data["model"]["vocab"]["\u0120house"] = len(data["model"]["vocab"])
    yield "gpt_oss", Tokenizer.from_str(json.dumps(data)), {}

    made = byte_level(lines, pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in DEEPSEEK_LLM]
        + [pre_tokenizers.Digits(individual_digits=True),
           pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    yield "deepseek2", made, {}

    made = byte_level(lines, pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(CL100K), "removed", invert=True),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
    made.add_special_tokens(specials(*tags, lstrip=True, rstrip=True))
    yield "phi4", made, {"eos_token": "<|end|>"}

    made = byte_level(lines, regex(*DEEPSEEK_V3))
    yield "deepseek3", made, {}

    made = byte_fallback(lines, normalizers.Sequence(
        [normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)]), None,
        decoders.Sequence(LLAMA_DECODER))
    made.add_special_tokens(specials("<s>", "</s>", "<unk>", *tags))
    frame(made, "<s>")
    yield "llama2", made, {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True,
                           "bos_token": "<s>", "eos_token": "</s>"}

    made = byte_fallback(lines, normalizers.Replace(" ", MARK),
                         pre_tokenizers.Split(" ", "merged_with_previous"),
                         decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(),
                                            decoders.Fuse()]))
    made.add_special_tokens(specials("<s>", "</s>", *tags))
    made.add_tokens([AddedToken(MARK * 2, normalized=False), AddedToken("\n\n", normalized=False),
                     AddedToken("<tool>", normalized=False)])
    frame(made, "<s>")
    yield "gemma", made, {"bos_token": "<s>", "eos_token": "</s>"}

    for name, scheme in (("metaspace_first", "first"), ("metaspace_always", "always")):
        made = byte_fallback(lines, None, pre_tokenizers.Metaspace(
            MARK, prepend_scheme=scheme, split=False), decoders.Sequence(LLAMA_DECODER))
        made.add_special_tokens(specials("<s>", "</s>", *tags))
        frame(made, "<s>")
        yield name, made, {"bos_token": "<s>", "eos_token": "</s>"}

    made = unigram(lines, pre_tokenizers.Metaspace(MARK, prepend_scheme="always", split=True), False)
    made.add_special_tokens(specials("<s>", "</s>", "<unk>"))
    frame(made, "", "</s>")
    yield "unigram", made, {"eos_token": "</s>"}

    made = unigram(lines, pre_tokenizers.Metaspace(MARK, prepend_scheme="first", split=False), True)
    made.add_special_tokens(specials("<s>", "</s>", "<unk>", *tags))
    yield "unigram_bytes", made, {"bos_token": "<s>", "eos_token": "</s>"}


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for name, made, config in make(folder):
        place = folder / "hf_tokenizers" / name
        place.mkdir(parents=True, exist_ok=True)
        made = Tokenizer.from_str(made.to_str())
        (place / "tokenizer.json").write_text(
            json.dumps(json.loads(made.to_str()), ensure_ascii=False, separators=(",", ":")) + "\n")
        (place / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
        rows = []
        for text in TEXTS:
            # In `tokenizers`, unlike in SentencePiece, text that spells a byte's token becomes it.
            if name == "unigram_bytes" and "<0x41>" in text:
                continue
            ids = made.encode(text).ids
            rows.append({"text": text, "ids": ids, "decoded": made.decode(ids)})
        (place / "expected.json").write_text(
            json.dumps(rows, ensure_ascii=True, separators=(",", ":")).replace("},{", "},\n{") + "\n")
        print(f"{name}: {made.get_vocab_size()} tokens")


if __name__ == "__main__":
    main()
