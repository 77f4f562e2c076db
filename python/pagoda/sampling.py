"""How tokens are chosen and where an output ends."""

from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

from . import _arguments

# vLLM's, which change no answer here.
_IGNORED = {
    "detokenize": "every output has its text",
    "spaces_between_special_tokens": "special tokens stand as they were written",
    "output_kind": "outputs of a stream hold all text so far",
    "skip_clone": "parameters are read when a request is made",
    "skip_reading_prefix_cache": "prompt_logprobs alone computes a whole prompt again",
    "extra_args": "there is nobody to read them",
    "flat_logprobs": "log-probabilities are dicts",
}


class SamplingParams:
    """Sampling parameters, with vLLM's names, meanings and defaults.

    `logprobs` and `prompt_logprobs` count the best tokens beside the chosen one. `max_tokens=None` goes
    on to the end of the context. `cache_salt` keeps a prompt's blocks from prompts with another salt,
    `kv_policy` bounds the keys and values that are kept ("streaming:4+1024").
    """

    def __init__(
        self,
        *,
        n: int = 1,
        temperature: float = 1.0,
        top_p: float = 1.0,
        top_k: int = 0,
        min_p: float = 0.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        repetition_penalty: float = 1.0,
        seed: Optional[int] = None,
        stop: Union[str, Sequence[str], None] = None,
        stop_token_ids: Optional[Sequence[int]] = None,
        include_stop_str_in_output: bool = False,
        ignore_eos: bool = False,
        max_tokens: Optional[int] = 16,
        min_tokens: int = 0,
        logprobs: Optional[int] = None,
        prompt_logprobs: Optional[int] = None,
        skip_special_tokens: bool = True,
        truncate_prompt_tokens: Optional[int] = None,
        logit_bias: Optional[Mapping[int, float]] = None,
        bad_words: Optional[Sequence[str]] = None,
        structured_outputs: Optional[Mapping[str, Any]] = None,
        cache_salt: Optional[str] = None,
        kv_policy: Optional[str] = None,
        priority: int = 0,
        **others: Any,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "others")}
        _arguments.check("SamplingParams", others, given, _IGNORED)
        self.__dict__.update(given)

    n: int
    temperature: float
    max_tokens: Optional[int]
    logprobs: Optional[int]
    prompt_logprobs: Optional[int]

    def __repr__(self) -> str:
        return f"SamplingParams({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def clone(self) -> "SamplingParams":
        """Returns a copy."""
        return SamplingParams(**vars(self))

    def fields(self, *, is_chat: bool) -> dict[str, Any]:
        """Returns the fields of a request's body."""
        body = {name: value for name, value in vars(self).items() if value is not None}
        if not body["priority"]:
            del body["priority"]
        if "logit_bias" in body:
            body["logit_bias"] = {str(token): bias for token, bias in body["logit_bias"].items()}
        if is_chat and self.logprobs is not None:
            body["logprobs"] = True
            body["top_logprobs"] = self.logprobs
        return body
