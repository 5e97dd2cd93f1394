"""What lies beside the variables of a checkpoint on the disk: a file with facts, read without TensorFlow."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PREFIX, FACTS = "ckpt-", ".json"


@dataclass(frozen=True)
class Saved:
    """A checkpoint.

    Attributes:
        path: what `tf.train.Checkpoint(...).read` takes, such as `folder / "ckpt-3"`.
        facts: what else was saved with it.
    """

    path: Path
    facts: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name that its files share."""
        return self.path.name

    @property
    def step(self) -> int:
        """The training step that it holds the state after."""
        return int(self.facts["step"])


def number_of(name: str) -> int:
    """Returns the number of a checkpoint.

    >>> number_of("ckpt-12")
    12
    """
    return int(name.removeprefix(PREFIX))


def names_in(folder: Path) -> tuple[str, ...]:
    """Returns the names of the checkpoints in a folder, oldest first."""
    names = (index.stem for index in folder.glob(f"{PREFIX}*.index") if index.with_suffix(FACTS).exists())
    return tuple(sorted(names, key=number_of))


def whole_in(folder: Path) -> tuple[Saved, ...]:
    """Returns the checkpoints in a folder, oldest first; without one that a training beside is deleting."""
    found = []
    for name in names_in(folder):
        with contextlib.suppress(OSError):
            found.append(read_saved(folder / name))
    return tuple(found)


def read_saved(path: Path) -> Saved:
    """Returns the checkpoint of that path."""
    return Saved(path, json.loads(path.with_name(path.name + FACTS).read_text()))
