"""Arguments by name and type: errors name the argument, and those of vLLM that are not here say why."""

import numbers
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

_PACKAGE = __name__.partition(".")[0]
_warned: set[tuple[str, str]] = set()


def _frames_inside() -> int:
    """Returns the stack level of the first caller outside the package, as warnings.warn counts from its caller."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        level += 1
        frame = frame.f_back
    return level


def warn_once(owner: str, name: str, text: str) -> None:
    """Warns of an argument, once in the life of the process, where the package was called."""
    if (owner, name) in _warned:
        return
    _warned.add((owner, name))
    warnings.warn(f"{owner}: {text}", UserWarning, stacklevel=_frames_inside())


def _edits(one: str, other: str) -> int:
    """Counts the letters that are put in, taken out, replaced or swapped between two words."""
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, there in enumerate(other, 1):
            cost = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != there))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == there:
                cost = min(cost, rows[-2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]


def nearest(name: str, known: Iterable[str]) -> Optional[str]:
    """Returns the known name that differs in a quarter of its letters at most, if there is one."""
    edits, found = min(((_edits(name.lower(), word), word) for word in known), default=(len(name), ""))
    return found if 4 * edits <= max(len(name), 4) else None


def unknown(owner: str, name: str, known: Iterable[str]) -> TypeError:
    """Returns the error of a name that nobody knows."""
    near = nearest(name, known)
    return TypeError(f"{owner}: there is no argument '{name}'" + (f"; did you mean '{near}'?" if near else ""))


def asks_for_nothing(value: Any) -> bool:
    """Is this None, False, 0 or empty?"""
    return value is None or (isinstance(value, (bool, int, float, str, Mapping, list, tuple)) and not value)


def check(
    owner: str,
    given: Mapping[str, Any],
    known: Iterable[str],
    ignored: Mapping[str, str],
    refused: Mapping[str, str] = {},
) -> None:
    """Raises TypeError for a name of `given` that is not in `ignored`, unless its value asks for nothing.

    An ignored one is warned of with its reason, a refused one raises it.
    """
    for name, value in given.items():
        if name not in ignored and name not in refused:
            raise unknown(owner, name, [*known, *ignored])
        if asks_for_nothing(value):
            continue
        if name in refused:
            raise TypeError(f"{owner}: {name} is not supported: {refused[name]}")
        warn_once(owner, name, f"{name} means nothing here: {ignored[name]}")


def shown(value: Any) -> str:
    """Returns a value as an error shows it."""
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "…"


def wrong_type(name: str, value: Any, expected: str) -> TypeError:
    """Returns the error of a value of a wrong type."""
    return TypeError(f"{name}: is {shown(value)} ({type(value).__name__}), expected {expected}")


def integer(name: str, value: Any, least: int, most: int) -> int:
    """Returns an int within bounds; an integer of NumPy is one."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise wrong_type(name, value, "an int")
    if not least <= value <= most:
        raise ValueError(f"{name}: is {shown(value)}, expected {least} to {most}")
    return int(value)


def number(name: str, value: Any) -> float:
    """Returns a finite or infinite number as a float."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise wrong_type(name, value, "a number")
    return float(value)


def token_ids(name: str, value: Any) -> list[int]:
    """Returns token ids, which are ints from 0."""
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
        raise wrong_type(name, value, "token ids")
    return [integer(name, token, 0, 2**32 - 1) for token in value]


def messages(name: str, value: Any) -> list[dict[str, Any]]:
    """Returns the messages of one conversation."""
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
        raise wrong_type(name, value, "a list of messages")
    for message in value:
        if not isinstance(message, Mapping):
            raise wrong_type(name, message, "a message, as {'role': 'user', 'content': 'Hello'}")
    return [dict(message) for message in value]
