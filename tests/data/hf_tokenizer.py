"""Hugging Face tokenizers built from a GGUF's vocabulary: the outside oracle of the text tests."""

from gguf import GGUFReader
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

CONTROL = 3


def byte_level_tokenizer(path):
    """SmolLM2's: digits one by one, then GPT-2's pattern. Control tokens are left out: the text of
    one is text here, as it is for Pagoda when specials are not asked for."""
    fields = GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]
    vocabulary = {token: i for i, token in enumerate(tokens) if types[i] != CONTROL}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer
