"""Where models are found without a name."""

import os
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_told = False


def default_model() -> str:
    """Returns the path at which the default model lies once it is downloaded."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "pagoda", "models", "SmolLM2-135M-Instruct.Q4_1.gguf")


def bundled_model() -> str:
    """Returns the path of stories260K, a model of 1 MB in this package that tells stories for children."""
    return str(_PACKAGE / "models" / "stories260K.gguf")


def model_to_use() -> str:
    """Returns PAGODA_MODEL, else the default model, else the bundled one, which is said once."""
    global _told
    chosen = os.environ.get("PAGODA_MODEL")
    if chosen:
        return chosen
    if os.path.exists(default_model()):
        return default_model()
    if not _told:
        _told = True
        print(
            "pagoda: no model is named and the default model is not in the cache folder: "
            "stories260K answers, a small model that tells stories for children; "
            '"pagoda pull smollm2" downloads the default model',
            file=sys.stderr,
        )
    return bundled_model()
