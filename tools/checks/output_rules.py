"""What stored outputs may hold: what every run gives again; and folded, nothing to read beforehand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nbformat import NotebookNode

from course_lib import varying
from tools.checks.varying_rules import Band, strays

MAX_SIGNIFICANT_DIGITS = 3

_VOLATILE = {
    "a time": r"(?<![\w.])\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?|minutes?|秒|ミリ秒|分間)(?![\w-])",
    "a time of day": r"(?<![\d:])\d?\d:[0-5]\d:[0-5]\d(?![\d:])",
    "a date": r"(?<!\d)(?:19|20)\d\d[-/.年]\d\d?[-/.月]\d\d?(?!\d)",
    # Not the names of devices, /job:localhost/device:CPU:0, nor the ends of tags.
    "an absolute path": r"(?<![\w.:/<])/[A-Za-z][\w.-]*/[\w.-]+|(?<!\w)[A-Za-z]:\\\w|(?<!\w)~/\w",
    "a memory address": r"\b0x[0-9a-fA-F]{5,}\b",
    "a random id": r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
}
# 12.345, 1.5e-7, .25, 3e8; not the 2.21.0 of a version, not a bare integer.
_FLOAT = re.compile(r"(?<![\w.])(\d*\.\d+|\d+(?=[eE][-+]?\d))(?:[eE][-+]?\d+)?(?![\w.]*\.?\d)")
_COMPARED_PICTURES = ("image/png", "image/jpeg")
# JupyterLab leaves a line of the first of these that an output has (CodeCell.getOutputPlaceholderText, 4.6).
_LEFT_A_LINE_OF = ("text/html", "image/svg+xml", "application/pdf", "text/markdown", "text/plain")


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
            for mime, text in _texts(output):
                faults = text_faults(text, numbers=mime == "text/plain")
                yield from (fault for fault in faults if not (modelled and fault.startswith("holds a time:")))
                yield from strays(text, bands)


def text_faults(text: str, *, numbers: bool = True) -> Iterator[str]:
    """Yields what in a compared text is volatile.

    Args:
        text: as printed.
        numbers: whether to look at digits too: pictures hold coordinates, which are exact.
    """
    for what, pattern in _VOLATILE.items():
        match = re.search(pattern, text)
        if match:
            yield f"holds {what}: {match[0]!r}"
    if numbers:
        for number in fragile_numbers(text):
            yield f"holds {number}: {MAX_SIGNIFICANT_DIGITS} digits survive a change of 1e-3, no more"


def fragile_numbers(text: str) -> list[str]:
    """Returns the numbers in a text that a relative change of 1e-3 would surely alter.

    Integers, shapes and whole floats such as 4.0 are exact. Any other number may show three digits, but for
    one that varies anyhow.

    >>> fragile_numbers("loss 0.69, 0.6931; shape (1200, 48); 4.0; 1.00e-5; ≈ 0.7123; TensorFlow 2.21.0")
    ['0.6931']
    """
    held = re.sub(varying.NUMBER, varying.SIGN, text)
    return [match[0] for match in _FLOAT.finditer(held) if _digits(match[1]) > MAX_SIGNIFICANT_DIGITS]


def _digits(mantissa: str) -> int:
    whole, _point, fraction = mantissa.partition(".")
    if fraction in ("", "0"):
        return 0 if "." in mantissa else len(whole)
    return len((whole + fraction).lstrip("0"))


def _texts(output: NotebookNode) -> Iterator[tuple[str, str]]:
    if output.output_type == "stream":
        yield "text/plain", output.text
        return
    for mime, data in output.data.items():
        if isinstance(data, str) and mime not in _COMPARED_PICTURES:
            yield mime, data


def folded_outputs(notebook: NotebookNode) -> Iterator[str]:
    """Yields a fault where folded cells leave different lines: the same line everywhere tells nothing.

    Neither does no line at all: a cell that waits for processes leaves an empty output first.
    """
    lines = {cell.id: line_left(cell) for cell in notebook.cells if is_folded(cell)}
    left = {cell_id: line for cell_id, line in lines.items() if line}
    if len(set(left.values())) > 1:
        told = ", ".join(f"{cell_id!r} {line!r}" for cell_id, line in left.items())
        yield f"its folded outputs do not all leave the same line to read: {told}"


def is_folded(cell: NotebookNode) -> bool:
    """Returns whether JupyterLab opens the notebook with the outputs of a cell folded."""
    return bool(cell.metadata.get("jupyter", {}).get("outputs_hidden", False))


def line_left(cell: NotebookNode) -> str:
    """Returns the line that JupyterLab leaves of a cell's folded outputs, "" where it leaves none.

    >>> from nbformat.v4 import new_code_cell, new_output
    >>> line_left(new_code_cell(outputs=[new_output("display_data", {"text/plain": "4 rows"})]))
    '4 rows'
    """
    texts = [text for output in cell.outputs[:1] for text in _texts_left(output)]
    return next((line for line in "".join(texts[:1]).split("\n") if line), "")


def _texts_left(output: NotebookNode) -> list[str]:
    if output.output_type == "stream":
        return [output.text]
    if output.output_type == "error":
        return ["\n".join(output.traceback) or f"{output.ename}: {output.evalue}"]
    return [output.data[mime] for mime in _LEFT_A_LINE_OF if isinstance(output.data.get(mime), str)]
