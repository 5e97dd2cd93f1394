"""Cells in a real kernel, of this or another environment, with a hand on Stop and on the interrupt key."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import Literal

import nbformat
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
Gesture = Literal["click Stop", "interrupt"]
LONGEST_CELL_SECONDS = 300


def notebook_of(*sources: str) -> NotebookNode:
    """Returns a notebook with these code cells."""
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])


def execute(
    notebook: NotebookNode,
    *,
    python: str = sys.executable,
    folder: Path = ROOT,
    gesture: Gesture | None = None,
) -> NotebookNode:
    """Executes a notebook in place and returns it.

    The reader makes the gesture once, while a cell trains: when its live picture has changed twice.
    """
    spec = KernelSpec(argv=[python, "-m", "ipykernel_launcher", "-f", "{connection_file}"], language="python")

    class Manager(AsyncKernelManager):
        @property
        def kernel_spec(self) -> KernelSpec:
            return spec

    client = _Reader(
        notebook,
        kernel_manager_class=Manager,
        record_timing=False,
        timeout=LONGEST_CELL_SECONDS,
        resources={"metadata": {"path": str(folder)}},
    )
    client.gesture = gesture
    with contextlib.suppress(CellExecutionError):  # the notebook holds it
        client.execute()
    return notebook


class _Reader(NotebookClient):
    """Executes cells, and makes one gesture on the way."""

    gesture: Gesture | None = None
    pictures_to_watch = 2
    button = ""

    def process_message(self, msg, cell, cell_index):
        kind, content = msg["msg_type"], msg["content"]
        if kind == "comm_open" and content["data"].get("state", {}).get("_model_name") == "ButtonModel":
            self.button = content["comm_id"]
        if kind == "update_display_data" and self.gesture:
            self.pictures_to_watch -= 1
            if self.pictures_to_watch == 0:
                self.make_gesture()
        return super().process_message(msg, cell, cell_index)

    def make_gesture(self) -> None:
        if self.gesture == "interrupt":
            self.interrupting = asyncio.ensure_future(self.km.interrupt_kernel())
        else:
            click = {"method": "custom", "content": {"event": "click"}}
            message = self.kc.session.msg("comm_msg", {"comm_id": self.button, "data": click})
            self.kc.shell_channel.send(message)
