"""Checkpoints of several processes, which all save: one keeps its own, or all write into one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course_lib.aborts import explaining_aborts
from course_lib.runtime import start_tensorflow
from course_lib.training.checkpoints import CheckpointFolder

start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402


class OthersCheckpoints(CheckpointFolder):
    """The folder of checkpoints for a process that is not the chief: it reads there, and saves elsewhere.

    Under a MultiWorkerMirroredStrategy to save is something that all workers do together: what a variable
    holds may have to be added up over them first. Each writes the same, and two that write into one folder
    would spoil it; so only the chief's is kept.

    Source: https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras (Save and load the model).
    """

    def prepare(self) -> None:
        """Does nothing: the chief makes the folder, and clears it."""

    def save(self, step: int, facts: Mapping[str, Any], **content: Any) -> str:
        """Writes a checkpoint into a folder that is then deleted; returns its name there."""
        with tempfile.TemporaryDirectory() as elsewhere:
            return CheckpointFolder(elsewhere).save(step, facts, **content)


class ClientCheckpoints(CheckpointFolder):
    """A folder into which all clients of a mesh write together; they call the same methods in the same order.

    One client makes folders, facts and names; between these, all wait for each other. Each counts the
    checkpoints from `prepare` on: other machines may see a new one only later, over a network.
    """

    def __init__(self, path: str | os.PathLike[str], mesh: Any, *, writes_names: bool) -> None:
        """Takes a folder that all clients share, and the mesh; one of them `writes_names`."""
        super().__init__(path)
        self._mesh, self._writes_names, self._count = mesh, writes_names, 0

    def prepare(self) -> None:
        """Makes the folder, and waits until it is made."""
        if self._writes_names:
            super().prepare()
        self._count = self._newest_number()
        self._wait("prepared")

    def save(self, step: int, facts: Mapping[str, Any], **content: Any) -> str:
        """Writes a checkpoint together with the other clients, and returns its name."""
        self._count += 1
        if self._writes_names:
            super().save(step, facts, **content)
        else:
            self._write(self._unfinished(self._name(step)), content)
        self._wait("named")
        return self._name(step)

    def _name(self, step: int) -> str:
        return self._numbered(self._count, step)

    def _write(self, folder: Path, content: Mapping[str, Any]) -> None:
        self._wait("made")
        super()._write(folder, content)
        self._wait("written")

    @explaining_aborts()
    def _wait(self, until: str) -> None:
        dtensor.barrier(self._mesh, until)
