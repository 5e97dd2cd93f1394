"""Outputs as they are stored: nothing in them changes from one execution to the next."""

from __future__ import annotations

import copy

import nbformat
from nbformat import NotebookNode

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def normalised(notebook: NotebookNode) -> NotebookNode:
    """Returns an executed notebook without widgets and volatile metadata, its streams merged.

    A widget needs a kernel. What an output holds beside it, a text or HTML, is what a notebook shows that did
    not run; each stored widget would hold the whole module that draws it.
    """
    clean: NotebookNode = copy.deepcopy(notebook)
    clean.metadata = nbformat.from_dict(
        {key: clean.metadata[key] for key in ("kernelspec", "language") if key in clean.metadata}
    )
    clean.metadata.language_info = nbformat.from_dict({"name": "python"})  # not its version on this machine
    for cell in clean.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = _merged(cell.outputs)
            for output in cell.outputs:
                output.get("data", {}).pop(WIDGET_VIEW, None)
    return clean


def _merged(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Returns the outputs with neighbouring pieces of one stream as one: where it was cut is chance."""
    merged: list[NotebookNode] = []
    for output in outputs:
        before = merged[-1] if merged else None
        if before is not None and _stream(before) == _stream(output) != "":
            before.text += output.text
        else:
            merged.append(output)
    return merged


def _stream(output: NotebookNode) -> str:
    return str(output.name) if output.output_type == "stream" else ""
