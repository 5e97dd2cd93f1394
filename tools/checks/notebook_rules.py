"""What an executed notebook must not show before the reader asks for it."""

from __future__ import annotations

from collections.abc import Iterator

from nbformat import NotebookNode

# JupyterLab leaves a line of the first of these that an output has (CodeCell.getOutputPlaceholderText, 4.6).
_LEFT_A_LINE_OF = ("text/html", "image/svg+xml", "application/pdf", "text/markdown", "text/plain")


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
    texts = [text for output in cell.outputs[:1] for text in _texts(output)]
    return next((line for line in "".join(texts[:1]).split("\n") if line), "")


def _texts(output: NotebookNode) -> list[str]:
    if output.output_type == "stream":
        return [output.text]
    if output.output_type == "error":
        return ["\n".join(output.traceback) or f"{output.ename}: {output.evalue}"]
    return [output.data[mime] for mime in _LEFT_A_LINE_OF if isinstance(output.data.get(mime), str)]
