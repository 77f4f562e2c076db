"""Arguments by name: unknown ones are errors that say the nearest, and those of vLLM that mean
nothing here are named once."""

import difflib
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

_warned: set[tuple[str, str]] = set()


def warn_once(owner: str, name: str, reason: str) -> None:
    """Warns of an argument, once in the life of the process."""
    if (owner, name) in _warned:
        return
    _warned.add((owner, name))
    warnings.warn(f"{owner}: {name} means nothing here: {reason}", UserWarning, stacklevel=4)


def check(owner: str, given: Mapping[str, Any], known: Iterable[str], ignored: Mapping[str, str]) -> None:
    """Raises TypeError for a name of `given` that is neither known nor ignored.

    An ignored one is named with its reason, unless its value is None or False, which ask for nothing.
    """
    for name, value in given.items():
        if name in ignored:
            if value is not None and value is not False:
                warn_once(owner, name, ignored[name])
            continue
        nearest = difflib.get_close_matches(name, [*known, *ignored], n=1, cutoff=0.5)
        hint = f"; did you mean '{nearest[0]}'?" if nearest else ""
        raise TypeError(f"{owner}: there is no argument '{name}'{hint}")
