"""The logs of a cluster, live in the cell that waits for it."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import starmap
from typing import Any, Self

_SECONDS_BETWEEN = 0.25
_NOTHING = {"text/plain": ""}
# Long lines break, or one of TensorFlow's would have the columns stand one below the other.
_ROW = "display:flex;flex-wrap:wrap;gap:0 1.5em"
_COLUMN = "flex:1 1 18em;min-width:0"
_LINES = "white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere"


class LiveLogs:
    """Shows the last lines of each task side by side while a cell runs; outside a notebook nothing.

    What it leaves behind is empty: the last lines differ from run to run. The report, which stays, is the
    value of the cell.

    Args:
        tails: returns for each task a heading and its last lines.
    """

    def __init__(self, tails: Callable[[], Mapping[str, Sequence[str]]]) -> None:
        self._tails = tails
        self._handle: Any = None
        if _in_a_kernel():
            self._handle = import_module("IPython.display").display(_NOTHING, raw=True, display_id=True)
        self._next = 0.0

    def refresh(self) -> None:
        """Shows the present lines, four times a second at most."""
        if self._handle is None or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _SECONDS_BETWEEN
        text = "".join(starmap(_column, self._tails().items()))
        self._handle.update({"text/html": f'<div style="{_ROW}">{text}</div>', **_NOTHING}, raw=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        if self._handle is not None:
            self._handle.update(_NOTHING, raw=True)


def _column(heading: str, lines: Sequence[str]) -> str:
    name, text = html.escape(heading), html.escape("\n".join(lines))
    return f'<div style="{_COLUMN}"><strong>{name}</strong><pre style="{_LINES}">{text}</pre></div>'


def _in_a_kernel() -> bool:
    shell = import_module("IPython").get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None
