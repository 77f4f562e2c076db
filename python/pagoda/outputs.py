"""What requests give back, by vLLM's names."""

from dataclasses import dataclass, field
from typing import Generic, Optional, TypeVar, Union


@dataclass
class Logprob:
    """A token's log-probability. `rank` is 1 for the likeliest."""

    logprob: float
    rank: Optional[int] = None
    decoded_token: Optional[str] = None


# By token id: the chosen token and the best ones, for each token of a text.
PromptLogprobs = list[Optional[dict[int, Logprob]]]
SampleLogprobs = list[dict[int, Logprob]]


@dataclass
class CompletionOutput:
    """One output of a request, all of it so far."""

    index: int
    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    cumulative_logprob: Optional[float] = None
    logprobs: Optional[SampleLogprobs] = None
    finish_reason: Optional[str] = None
    stop_reason: Union[int, str, None] = None

    def finished(self) -> bool:
        """Has the output ended?"""
        return self.finish_reason is not None


@dataclass
class RequestOutput:
    """The outputs of one request. `num_cached_tokens` of its prompt were in the cache."""

    request_id: str
    prompt: Optional[str]
    prompt_token_ids: list[int]
    prompt_logprobs: Optional[PromptLogprobs]
    outputs: list[CompletionOutput]
    finished: bool
    num_cached_tokens: int = 0


@dataclass
class EmbeddingOutput:
    """A vector of length 1."""

    embedding: list[float]

    @property
    def hidden_size(self) -> int:
        """How many numbers the vector has."""
        return len(self.embedding)


@dataclass
class PoolingOutput:
    """A vector of length 1."""

    data: list[float]


_Output = TypeVar("_Output", EmbeddingOutput, PoolingOutput)


@dataclass
class PoolingRequestOutput(Generic[_Output]):
    """The pooled hidden state of one prompt."""

    request_id: str
    outputs: _Output
    prompt_token_ids: list[int]
    finished: bool = True
    num_cached_tokens: int = 0


class EmbeddingRequestOutput(PoolingRequestOutput[EmbeddingOutput]):
    """The embedding of one prompt."""
