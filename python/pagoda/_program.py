"""The program `pagoda` of this package."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ._models import bundled_model


def path() -> str:
    """Returns the path of the program."""
    return str(Path(__file__).resolve().parent / "bin" / "pagoda")


def execute(words: Sequence[str]) -> NoReturn:
    """Becomes the program with these arguments. Where no model is named and the default model is not
    there, the program says that the bundled one answers."""
    os.environ.setdefault("PAGODA_STAND_IN_MODEL", bundled_model())
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(path(), ["pagoda", *words])


def main() -> NoReturn:
    """What `pagoda` on PATH runs."""
    execute(sys.argv[1:])
