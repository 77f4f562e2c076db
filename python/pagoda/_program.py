"""The program `pagoda` of this package."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ._models import bundled_model, default_model, model_to_use

# These run a model, and take the default one where none is named.
_RUNNING = ("chat", "run", "serve")


def path() -> str:
    """Returns the path of the program."""
    return str(Path(__file__).resolve().parent / "bin" / "pagoda")


def execute(words: Sequence[str]) -> NoReturn:
    """Becomes the program with these arguments."""
    if "PAGODA_MODEL" not in os.environ and not os.path.exists(default_model()):
        runs = bool(words) and words[0] in _RUNNING and not {"-h", "--help"} & set(words)
        names_model = any(word == "-m" or word.startswith("--model") or word.endswith(".gguf") for word in words)
        os.environ["PAGODA_MODEL"] = model_to_use() if runs and not names_model else bundled_model()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(path(), ["pagoda", *words])


def main() -> NoReturn:
    """What `pagoda` on PATH runs."""
    execute(sys.argv[1:])
