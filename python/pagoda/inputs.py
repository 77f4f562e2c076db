"""Prompts as dicts, by vLLM's names."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Union


class _WithSalt(TypedDict, total=False):
    cache_salt: str  # blocks of a salt are found under it alone


class TextPrompt(_WithSalt):
    """A text."""

    prompt: str


class TokensPrompt(_WithSalt):
    """Token ids."""

    prompt_token_ids: list[int]


# A text, token ids, or a dict with "prompt" or "prompt_token_ids" and perhaps "cache_salt".
PromptType = Union[str, Sequence[int], TextPrompt, TokensPrompt, Mapping[str, Any]]
