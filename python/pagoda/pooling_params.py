"""PoolingParams, as embed() and encode() of vLLM take them."""

from typing import Any, Optional

from . import _arguments

_REFUSED = {
    "dimensions": "vectors have the model's own width",
    "step_tag_id": "there are no rewards by steps",
    "returned_token_ids": "there are no rewards by steps",
    "extra_kwargs": "there is nobody to read them",
}


_TRUNCATE = "truncate_prompt_tokens"
_TOKENS_MOST = 2**31 - 1


class PoolingParams:
    """An embedding is the last token's vector, of length 1. `truncate_prompt_tokens` shortens a prompt to its last
    tokens; -1 keeps as many as the context holds."""

    def __init__(
        self,
        *,
        normalize: Optional[bool] = None,
        use_activation: Optional[bool] = None,
        truncate_prompt_tokens: Optional[int] = None,
        **others: Any,
    ):
        others.pop("task", None)
        _arguments.check("PoolingParams", others, ("normalize", "use_activation", _TRUNCATE), {}, _REFUSED)
        if normalize is False or use_activation is False:
            raise ValueError("PoolingParams: vectors have length 1 always")
        self.truncate_prompt_tokens = truncate_prompt_tokens
        if truncate_prompt_tokens is not None:
            self.truncate_prompt_tokens = _arguments.integer(_TRUNCATE, truncate_prompt_tokens, -1, _TOKENS_MOST)

    def fields(self) -> dict[str, Any]:
        """Returns the members of a request's body."""
        return {} if self.truncate_prompt_tokens is None else {_TRUNCATE: self.truncate_prompt_tokens}
