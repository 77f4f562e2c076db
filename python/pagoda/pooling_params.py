"""PoolingParams, as embed() and encode() of vLLM take them."""

from typing import Any, Optional

from . import _arguments

_REFUSED = {
    "dimensions": "vectors have the model's own width",
    "truncate_prompt_tokens": "a text to embed is given as long as it is",
    "step_tag_id": "there are no rewards by steps",
    "returned_token_ids": "there are no rewards by steps",
    "extra_kwargs": "there is nobody to read them",
}


class PoolingParams:
    """An embedding is the last token's vector, of length 1: there is nothing to choose."""

    def __init__(self, *, normalize: Optional[bool] = None, use_activation: Optional[bool] = None, **others: Any):
        others.pop("task", None)
        _arguments.check("PoolingParams", others, ("normalize", "use_activation"), {}, _REFUSED)
        if normalize is False or use_activation is False:
            raise ValueError("PoolingParams: vectors have length 1 always")
