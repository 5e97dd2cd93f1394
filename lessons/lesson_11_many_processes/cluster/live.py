"""The logs of a cluster, live in the cell that waits for it."""

from __future__ import annotations

import contextlib
import html
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import starmap
from typing import Any

_SECONDS_BETWEEN = 0.25
_NOTHING = {"text/plain": ""}
# Long lines break, or one of TensorFlow's would have the columns stand one below the other.
_ROW = "display:flex;flex-wrap:wrap;gap:0 1.5em"
_COLUMN = "flex:1 1 18em;min-width:0"
_LINES = "white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere"


@contextlib.contextmanager
def live_logs(tails: Callable[[], Mapping[str, Sequence[str]]]) -> Iterator[Callable[[], None]]:
    """Shows the last lines of each task side by side while a cell runs; outside a notebook nothing.

    What it leaves behind is empty: the last lines differ from run to run. The report, which stays, is the
    value of the cell.

    Args:
        tails: returns for each task a heading and its last lines.

    Yields:
        What shows the present lines, four times a second at most.
    """
    if not _in_a_kernel():
        yield lambda: None
        return
    handle: Any = import_module("IPython.display").display(_NOTHING, raw=True, display_id=True)
    due = [0.0]

    def refresh() -> None:
        if time.monotonic() >= due[0]:
            due[0] = time.monotonic() + _SECONDS_BETWEEN
            text = "".join(starmap(_column, tails().items()))
            handle.update({"text/html": f'<div style="{_ROW}">{text}</div>', **_NOTHING}, raw=True)

    try:
        yield refresh
    finally:
        handle.update(_NOTHING, raw=True)


def _column(heading: str, lines: Sequence[str]) -> str:
    name, text = html.escape(heading), html.escape("\n".join(lines))
    return f'<div style="{_COLUMN}"><strong>{name}</strong><pre style="{_LINES}">{text}</pre></div>'


def _in_a_kernel() -> bool:
    shell = import_module("IPython").get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None
