"""What a checkpoint is on the disk: a folder with the files of `tf.train.Checkpoint` and one with facts."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _

CONTENT = "variables"  # the prefix of the files that `tf.train.Checkpoint` writes and reads
FACTS = "facts.json"
_NAME = re.compile(r"checkpoint-\d+-step-(\d+)")


@dataclass(frozen=True)
class Saved:
    """A checkpoint.

    Attributes:
        path: its folder; `path / "variables"` is what `tf.train.Checkpoint(...).restore` takes.
        step: the training step that it holds the state after.
        facts: what else was saved with it.
    """

    path: Path
    step: int
    facts: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.path.name

    def fact(self, name: str) -> dict[str, Any]:
        """Returns the fact `name`, a mapping.

        Raises:
            CourseError: the checkpoint has no such fact: something else saved it.
        """
        if name not in self.facts:
            raise CourseError(
                _("The checkpoint {path} was not saved by this kind of training.", path=self.path),
                allowed=_("checkpoints whose {file} holds {name!r}", file=FACTS, name=name),
                cure=_("Give this training a folder of its own."),
            )
        return dict(self.facts[name])


def names_in(folder: Path) -> tuple[str, ...]:
    """Returns the names of the checkpoints in a folder, oldest first."""
    if not folder.is_dir():
        return ()
    return tuple(sorted(entry.name for entry in folder.iterdir() if _NAME.fullmatch(entry.name)))


def whole_in(folder: Path) -> tuple[Saved, ...]:
    """Returns the checkpoints in a folder, oldest first; without one that a training beside is deleting."""
    found = []
    for name in names_in(folder):
        with contextlib.suppress(OSError, ValueError):
            found.append(read_saved(folder / name))
    return tuple(found)


def read_saved(path: Path) -> Saved:
    """Returns the checkpoint in a folder."""
    return Saved(path, int(path.name.rpartition("-")[2]), json.loads((path / FACTS).read_text()))
