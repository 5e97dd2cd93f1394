"""Checkpoints of a training in several processes: all of them save, and one checkpoint is kept."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any

from course_lib.training.checkpoints import CheckpointFolder


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
