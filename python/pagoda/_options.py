"""Arguments of LLM: their types, their variables in the environment, and a model opened by them."""

import json
import os
from collections.abc import Mapping
from typing import Any, Optional

from . import _arguments, _foreign, _pagoda
from ._models import model_to_use

_TEXTS = ("revision", "tokenizer", "chat_template", "device", "kv_cache_dtype", "kv_eviction", "dtype", "quantization")
_COUNTS = ("max_model_len", "block_size", "max_num_seqs", "max_num_batched_tokens", "threads", "num_gpu_blocks_override")
_COUNT_MAX = 2**32 - 1
_SIZES_OF_ONE = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
_NAMES = (*_TEXTS, *_COUNTS, "speculative_config", "kv_cache_memory_bytes", "gpu_memory_utilization", "enable_prefix_caching")
_KNOWN = (*_NAMES, *_SIZES_OF_ONE, "model")


def _read(name: str, value: Any) -> Any:
    """Returns an argument's value as the module takes it."""
    if name in _TEXTS:
        text = os.fspath(value) if hasattr(value, "__fspath__") else value
        if name == "dtype" and not isinstance(text, str):
            text = str(text).removeprefix("torch.")
        if not isinstance(text, str):
            raise _arguments.wrong_type(name, value, "a str")
        return text
    if name == "speculative_config":
        if isinstance(value, Mapping):
            return json.dumps(dict(value)) if value else ""
        if not isinstance(value, str):
            raise _arguments.wrong_type(name, value, "a dict, or its JSON as a str")
        return value
    if name in _COUNTS:
        return _arguments.integer(name, value, 0 if name == "threads" else 1, _COUNT_MAX)
    if name == "gpu_memory_utilization":
        return _arguments.number(name, value)
    if name == "enable_prefix_caching":
        if not isinstance(value, (bool, int)):
            raise _arguments.wrong_type(name, value, "a bool")
        return bool(value)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise _arguments.wrong_type(name, value, 'bytes as an int, or a text like "4GiB"')
    return str(value)


def _of_environment(name: str) -> Any:
    """Returns the value of the variable that `pagoda serve` has for this argument, else None."""
    variable = f"PAGODA_{name.upper()}"
    text = os.environ.get(variable)
    if not text:
        return None
    if name in _TEXTS or name in ("kv_cache_memory_bytes", "speculative_config"):
        return text
    words = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}
    try:
        if name == "enable_prefix_caching":
            return words[text.lower()]
        return float(text) if name == "gpu_memory_utilization" else int(text)
    except (KeyError, ValueError):
        raise ValueError(f"{variable}: is {_arguments.shown(text)}, which is no value of {name}") from None


def _refuse_several(owner: str, options: Mapping[str, Any]) -> None:
    for name in _SIZES_OF_ONE:
        if options.get(name) not in (None, 1):
            raise ValueError(f"{owner}: {name} is {options[name]}, but one process computes; `pagoda serve` has -tp")


def open_model(owner: str, model: Optional[str], options: Mapping[str, Any]) -> "_pagoda.Model":
    """Loads a model. `options` are arguments of LLM; None stands for a default."""
    _refuse_several(owner, options)
    others = {name: value for name, value in options.items() if name not in _KNOWN}
    _arguments.check(owner, others, _KNOWN, _foreign.LLM_IGNORED, _foreign.LLM_REFUSED)
    asked = _pagoda.Options()
    asked.model = _read_model(model)
    for name in _NAMES:
        value = options.get(name)
        if value is None:
            value = _of_environment(name)
        if value is not None:
            setattr(asked, name, _read(name, value))
    opened = _pagoda.Model.open(asked)
    share_is_silent = asked.device == "cpu" or (asked.device == "auto" and not _pagoda.shows_nvidia_gpu())
    if options.get("gpu_memory_utilization") is not None and share_is_silent:
        bounds = "kv_cache_memory_bytes or num_gpu_blocks_override bounds the KV cache"
        text = f"gpu_memory_utilization bounds nothing on a CPU; {bounds}"
        _arguments.warn_once(owner, "gpu_memory_utilization", text)
    return opened


def _read_model(model: Any) -> str:
    if model is None:
        return model_to_use()
    if not isinstance(model, (str, os.PathLike)):
        raise _arguments.wrong_type("model", model, "a path or a name")
    return os.fspath(model)
