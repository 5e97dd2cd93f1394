"""What stored outputs may hold: what every run gives again; and folded, nothing to read beforehand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nbformat import NotebookNode

from tools.checks.varying_rules import Band, strays

_VOLATILE = {
    "a time": r"(?<![\w.])\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?|minutes?|秒|ミリ秒|分間)(?![\w-])",
    "a time of day": r"(?<![\d:])\d?\d:[0-5]\d:[0-5]\d(?![\d:])",
    "a date": r"(?<!\d)(?:19|20)\d\d[-/.年]\d\d?[-/.月]\d\d?(?!\d)",
    # Not the names of devices, /job:localhost/device:CPU:0, nor the ends of tags.
    "an absolute path": r"(?<![\w.:/<])/[A-Za-z][\w.-]*/[\w.-]+|(?<!\w)[A-Za-z]:\\\w|(?<!\w)~/\w",
    "a memory address": r"\b0x[0-9a-fA-F]{5,}\b",
    "a random id": r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
}
_PICTURES = ("image/png", "image/jpeg")
_BLANK = {"text/plain": ""}  # of a display that was emptied when its cell ended


def output_faults(cell: NotebookNode, bands: Sequence[Band] = ()) -> Iterator[str]:
    """Yields what in a code cell's outputs would differ on another run or machine.

    A cell tagged `modelled` may show times: it computes them, and measures none. A number that varies,
    `≈ 0.36`, lies in one of the bands.
    """
    modelled = "modelled" in cell.metadata.get("tags", ())
    for output in cell.outputs:
        if output.output_type == "error":
            yield f"raised {output.ename}, which is to be caught and printed"
        elif output.output_type == "stream" and output.name == "stderr":
            yield f"wrote to stderr: {output.text[:60]!r}"
        else:
            for text in _texts(output):
                yield from (fault for what, fault in volatile(text) if not (modelled and what == "a time"))
                yield from strays(text, bands)


def volatile(text: str) -> Iterator[tuple[str, str]]:
    """Yields what in a stored text another run would change: its kind, and a line about it.

    >>> [what for what, _fault in volatile("took 0.5 s at 0x7f0012ab34cd on /job:localhost/device:CPU:0")]
    ['a time', 'a memory address']
    """
    for what, pattern in _VOLATILE.items():
        if match := re.search(pattern, text):
            yield what, f"holds {what}: {match[0]!r}"


def tells_beforehand(cell: NotebookNode) -> bool:
    """Returns whether a folded cell may tell what was measured: JupyterLab leaves a line of it to read.

    It is the first line of the first output; that of `reveal` is the same words everywhere.
    """
    *others, last = cell.outputs
    return "text/html" not in last.get("data", {}) or any(other.get("data") != _BLANK for other in others)


def _texts(output: NotebookNode) -> list[str]:
    if output.output_type == "stream":
        return [output.text]
    return [data for mime, data in output.data.items() if isinstance(data, str) and mime not in _PICTURES]
