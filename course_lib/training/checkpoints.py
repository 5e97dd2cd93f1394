"""The newest checkpoints of one training, kept by `tf.train.CheckpointManager`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course_lib.runtime import start_tensorflow
from course_lib.training.saved import FACTS, PREFIX, Saved, names_in, number_of, read_saved

tf = start_tensorflow()

_MOST = 3  # checkpoints in a folder


class CheckpointFolder:
    """A folder that keeps the three newest checkpoints of one training.

    Making the object touches no disk: another process may be training into the folder.

    Attributes:
        path: the folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def names(self) -> tuple[str, ...]:
        """Returns the names of the checkpoints, oldest first."""
        return names_in(self.path)

    def save(self, step: int, facts: Mapping[str, Any], **content: Any) -> str:
        """Writes a checkpoint and returns its name.

        Args:
            step: the training step that `content` holds the state after.
            facts: what else belongs to it; anything that JSON can hold.
            **content: what `tf.train.Checkpoint` saves, by name.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        checkpoint = tf.train.Checkpoint(**content)
        manager = tf.train.CheckpointManager(checkpoint, str(self.path), max_to_keep=_MOST)
        newest = manager.latest_checkpoint
        number = 1 + (number_of(Path(newest).name) if newest else 0)
        path = self.path / f"{PREFIX}{number}"
        path.with_suffix(FACTS).write_text(json.dumps({"step": step, **facts}, indent=1))
        manager.save(checkpoint_number=number)
        for left in self.path.glob(f"{PREFIX}*{FACTS}"):
            if not left.with_suffix(".index").exists():
                left.unlink()
        return path.name

    def latest(self) -> Saved | None:
        """Returns the newest checkpoint that is whole, or None if there is none.

        The manager's own record can name one that is not: DTensor saves while Python goes on, so that a
        process may be killed after the record was written and before the files had their names.
        """
        names = self.names()
        return read_saved(self.path / names[-1]) if names else None

    def restore_latest(self, **content: Any) -> Saved | None:
        """Gives `content` the values of the newest checkpoint, whatever layout they were saved in.

        Args:
            **content: as for `save`.

        Returns:
            The checkpoint, or None if there is none: then `content` is as it was.
        """
        saved = self.latest()
        if saved is not None:
            restore(saved, **content)
        return saved


def restore(saved: Saved, **content: Any) -> None:
    """Gives `content` the values of a checkpoint, whatever layout they were saved in.

    Args:
        saved: as from `CheckpointFolder.latest`. It may hold more, such as the slots of an optimizer.
        **content: as for `CheckpointFolder.save`.
    """
    status = tf.train.Checkpoint(**content).read(str(saved.path))
    status.assert_existing_objects_matched().expect_partial()
