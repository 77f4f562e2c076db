"""How tokens are chosen and where an output ends."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, Optional, Union

from . import _arguments, _foreign

_INT_MAX = 2**31 - 1
# The least and the most that a whole number may be.
_INTS = {
    "n": (1, 128),
    "top_k": (-1, _INT_MAX),
    "max_tokens": (1, _INT_MAX),
    "min_tokens": (0, _INT_MAX),
    "logprobs": (0, 20),
    "prompt_logprobs": (0, 20),
    "truncate_prompt_tokens": (-1, _INT_MAX),
    "priority": (-(2**31), _INT_MAX),
    "seed": (-(2**63), 2**63 - 1),
}
_OPTIONAL = ("max_tokens", "logprobs", "prompt_logprobs", "truncate_prompt_tokens", "seed")
# The range of a number, and how it is said.
_NUMBERS = {
    "temperature": (lambda value: 0 <= value <= 100, "0 to 100"),
    "top_p": (lambda value: 0 < value <= 1, "above 0, at most 1"),
    "min_p": (lambda value: 0 <= value <= 1, "0 to 1"),
    "presence_penalty": (lambda value: -2 <= value <= 2, "-2 to 2"),
    "frequency_penalty": (lambda value: -2 <= value <= 2, "-2 to 2"),
    "repetition_penalty": (lambda value: 0 < value < float("inf"), "above 0, finite"),
}
_BOOLS = ("include_stop_str_in_output", "ignore_eos", "skip_special_tokens")


@dataclass
class StructuredOutputsParams:
    """The form of an output: one of a JSON schema, a regular expression, a choice, a grammar, any JSON object."""

    json: Union[str, dict, None] = None
    regex: Optional[str] = None
    choice: Optional[list[str]] = None
    grammar: Optional[str] = None
    json_object: Optional[bool] = None
    disable_fallback: bool = False
    disable_any_whitespace: bool = False
    disable_additional_properties: bool = False
    whitespace_pattern: Optional[str] = None
    structural_tag: Optional[str] = None

    def __post_init__(self) -> None:
        forms = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")
        asked = [name for name in forms if getattr(self, name) not in (None, False)]
        if len(asked) != 1:
            given = " and ".join(asked) or "no form"
            raise ValueError(f"structured outputs: {given} given, expected one of {', '.join(forms)}")
        self.disable_fallback = False  # there is one matcher, and nothing to fall back to


class GuidedDecodingParams(StructuredOutputsParams):
    """The name that older vLLM has for StructuredOutputsParams."""


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
        structured_outputs: Union[StructuredOutputsParams, Mapping[str, Any], None] = None,
        cache_salt: Optional[str] = None,
        kv_policy: Optional[str] = None,
        priority: int = 0,
        **others: Any,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "others")}
        guided = others.pop("guided_decoding", None)
        if guided is not None:
            given["structured_outputs"] = guided
        if others.get("best_of") == n:
            del others["best_of"]
        _arguments.check("SamplingParams", others, given, _foreign.SAMPLING_IGNORED, _foreign.SAMPLING_REFUSED)
        _check(given)
        if is_dataclass(given["structured_outputs"]):
            form = asdict(given["structured_outputs"])
            given["structured_outputs"] = {name: value for name, value in form.items() if value not in (None, False)}
        self.__dict__.update(given)

    n: int
    temperature: float
    max_tokens: Optional[int]
    logprobs: Optional[int]
    prompt_logprobs: Optional[int]

    @classmethod
    def from_optional(cls, **given: Any) -> "SamplingParams":
        """Returns parameters; those that are None have their defaults."""
        return cls(**{name: value for name, value in given.items() if value is not None})

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


def _check(given: dict[str, Any]) -> None:
    """Raises TypeError or ValueError for a value that no request may have, with its name."""
    for name, (least, most) in _INTS.items():
        if given[name] is None and name in _OPTIONAL:
            continue
        given[name] = _arguments.integer(name, given[name], least, most)
    for name, (fits, said) in _NUMBERS.items():
        if not fits(_arguments.number(name, given[name])):
            raise ValueError(f"{name}: is {given[name]}, expected {said}")
    for name in _BOOLS:
        if not isinstance(given[name], bool):
            raise _arguments.wrong_type(name, given[name], "a bool")
    for name in ("cache_salt", "kv_policy"):
        if given[name] is not None and not isinstance(given[name], str):
            raise _arguments.wrong_type(name, given[name], "a str")
    if given["max_tokens"] is not None and given["min_tokens"] > given["max_tokens"]:
        raise ValueError(f"min_tokens: is {given['min_tokens']}, more than max_tokens, which is {given['max_tokens']}")
    _check_lists(given)


def _check_lists(given: dict[str, Any]) -> None:
    for name in ("stop", "bad_words"):
        texts = given[name]
        if texts is None or (name == "stop" and isinstance(texts, str)):
            continue
        if isinstance(texts, str) or not hasattr(texts, "__iter__") or any(not isinstance(text, str) for text in texts):
            raise _arguments.wrong_type(name, texts, "a list of str")
    if given["stop_token_ids"] is not None:
        given["stop_token_ids"] = _arguments.token_ids("stop_token_ids", given["stop_token_ids"])
    for name in ("logit_bias", "structured_outputs"):
        value = given[name]
        if value is not None and not isinstance(value, Mapping) and not isinstance(value, StructuredOutputsParams):
            raise _arguments.wrong_type(name, value, "a dict")
