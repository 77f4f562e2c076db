"""Shows how many of several requests are finished, on stderr."""

import sys
import time
from types import TracebackType
from typing import Any, Optional

_BAR_WIDTH = 30
_SECONDS_BETWEEN = 0.1


class Progress:
    """A bar, from `with` to its end.

    `wanted` is vLLM's `use_tqdm`: False shows nothing, True a bar of our own where stderr is a terminal and
    there are several requests; tqdm itself, or a function with its arguments, makes another one.
    """

    def __init__(self, wanted: Any, total: int) -> None:
        self._total = total
        self._finished = 0
        self._tokens = 0
        self._began = time.monotonic()
        self._drawn: Optional[float] = None
        self._tqdm = wanted(total=total, desc="Processed prompts") if callable(wanted) else None
        self._draws = wanted is True and total > 1 and sys.stderr is not None and sys.stderr.isatty()

    def add(self, finished: bool, tokens: int) -> None:
        """Takes what came of one request: whether that was its end, and how many tokens."""
        self._finished += finished
        self._tokens += tokens
        if self._tqdm is not None and finished:
            self._tqdm.update(1)
        now = time.monotonic()
        if self._draws and (self._drawn is None or now - self._drawn >= _SECONDS_BETWEEN):
            self._draw(now)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self._tqdm is not None:
            self._tqdm.close()
        if self._draws:
            self._draw(time.monotonic())
            sys.stderr.write("\n")

    def _draw(self, now: float) -> None:
        self._drawn = now
        bar = "#" * (_BAR_WIDTH * self._finished // self._total)
        seconds = max(now - self._began, 1e-3)
        sys.stderr.write(
            f"\r[{bar:<{_BAR_WIDTH}}] {self._finished}/{self._total} prompts, {self._tokens / seconds:.1f} tok/s "
        )
        sys.stderr.flush()
