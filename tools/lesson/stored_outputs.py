"""Outputs as they are stored: nothing in them changes from one execution to the next."""

from __future__ import annotations

import json
from typing import Any

import nbformat
from nbformat import NotebookNode

WIDGET_STATE = "application/vnd.jupyter.widget-state+json"


def normalised(notebook: NotebookNode) -> NotebookNode:
    """Returns an executed notebook with numbered widgets, merged streams and no volatile metadata.

    Widgets are numbered in the order in which the kernel made them, their only stable order.
    """
    widgets = _widget_state(notebook)
    text = json.dumps(notebook, ensure_ascii=False)
    for number, model_id in enumerate(widgets):
        text = text.replace(model_id, f"{number:032x}")
    clean: NotebookNode = nbformat.from_dict(json.loads(text))
    clean.metadata = _stable_metadata(clean.metadata)
    for cell in clean.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = _merged(cell.outputs)
    return clean


def _widget_state(notebook: NotebookNode) -> dict[str, Any]:
    widgets = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {})
    state: dict[str, Any] = widgets.get("state", {})
    return state


def _stable_metadata(metadata: NotebookNode) -> NotebookNode:
    """Returns the metadata without the version of this machine's Python; widgets sorted by number."""
    stable: NotebookNode = nbformat.from_dict(
        {key: metadata[key] for key in ("kernelspec", "language") if key in metadata}
    )
    stable.language_info = nbformat.from_dict({"name": "python"})
    if metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state"):
        stable.widgets = metadata.widgets
        state = stable.widgets[WIDGET_STATE].state
        stable.widgets[WIDGET_STATE].state = nbformat.from_dict({key: state[key] for key in sorted(state)})
    return stable


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
