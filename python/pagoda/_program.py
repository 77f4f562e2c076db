"""The program `pagoda` of this package."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ._models import bundled_model, default_model, model_to_use

# These run a model: that of PAGODA_MODEL where none is named.
_RUNNING = ("chat", "run", "serve")


def path() -> str:
    """Returns the path of the program."""
    return str(Path(__file__).resolve().parent / "bin" / "pagoda")


def execute(words: Sequence[str]) -> NoReturn:
    """Becomes the program with these arguments."""
    runs = bool(words) and words[0] in _RUNNING and not {"-h", "--help"} & set(words)
    if runs and "PAGODA_MODEL" not in os.environ and not os.path.exists(default_model()):
        named = any(word == "-m" or word.startswith("--model") or os.path.exists(word) for word in words[1:])
        os.environ["PAGODA_MODEL"] = bundled_model() if named else model_to_use()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(path(), ["pagoda", *words])


def main() -> NoReturn:
    """What `pagoda` on PATH runs."""
    execute(sys.argv[1:])
