"""Checkpoints of `tf.train.Checkpoint` that are whole or not there at all, whenever the process dies."""

from __future__ import annotations

import json
import os
import shutil
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from course_lib.aborts import explaining_aborts
from course_lib.dtensor import mesh_spec
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.training.saved import CONTENT, FACTS, Saved, names_in, read_saved

tf = start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

_UNFINISHED = "unfinished-"


class CheckpointFolder:
    """A folder that keeps the newest checkpoints of one training.

    A checkpoint is written under another name and then renamed. Making the object touches no disk: another
    process may be training into the folder.

    Attributes:
        path: the folder.
        keep: how many checkpoints are kept.
    """

    def __init__(self, path: str | os.PathLike[str], keep: int = 3) -> None:
        self.path, self.keep = Path(path), keep

    def prepare(self) -> None:
        """Makes the folder, and clears what killed processes left: only for who trains into it.

        Raises:
            CourseError: it cannot be made or written to.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for leftover in self.path.glob(f"{_UNFINISHED}*"):
                shutil.rmtree(leftover)
        except OSError as error:
            raise self._cannot_write(error) from error

    def names(self) -> tuple[str, ...]:
        """Returns the names of the checkpoints, oldest first."""
        return names_in(self.path)

    def save(self, step: int, facts: Mapping[str, Any], **content: Any) -> str:
        """Writes a checkpoint and returns its name.

        Args:
            step: the training step that `content` holds the state after.
            facts: what else belongs to it; anything that JSON can hold.
            **content: what `tf.train.Checkpoint` saves, by name.

        Raises:
            CourseError: the disk refused, `content` lies on several meshes, or the devices can no longer send
                each other data. The checkpoints that were there are untouched.
        """
        _require_one_mesh(content)
        name = self._name(step)
        unfinished = self._unfinished(name)
        try:
            shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed
            unfinished.mkdir(parents=True)
            self._write(unfinished, content)
            (unfinished / FACTS).write_text(json.dumps(facts, indent=1))
            unfinished.rename(self.path / name)
            for old in self.names()[: -self.keep]:
                shutil.rmtree((self.path / old).rename(self._unfinished(old)))  # no half of it keeps the name
        except (OSError, tf.errors.OpError) as error:
            raise self._cannot_write(error) from error
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        return name

    def latest(self) -> Saved | None:
        """Returns the newest checkpoint, or None if there is none."""
        return next((read_saved(self.path / name) for name in reversed(self.names())), None)

    def restore_latest(self, **content: Any) -> Saved | None:
        """Gives `content` the values of the newest checkpoint, whatever layout they were saved in.

        Args:
            **content: as for `save`.

        Returns:
            The checkpoint, or None if there is none: then `content` is as it was.

        Raises:
            CourseError: as `restore`.
        """
        saved = self.latest()
        if saved is not None:
            restore(saved, **content)
        return saved

    def _name(self, step: int) -> str:
        """Returns the name of the next checkpoint."""
        return self._numbered(1 + self._newest_number(), step)

    def _newest_number(self) -> int:
        """Returns the number of the newest checkpoint; 0 if there is none."""
        return max((int(name.split("-")[1]) for name in self.names()), default=0)

    def _numbered(self, number: int, step: int) -> str:
        return f"checkpoint-{number:06d}-step-{step:06d}"

    def _unfinished(self, name: str) -> Path:
        """Returns the folder of a checkpoint while it is written."""
        return self.path / f"{_UNFINISHED}{name}"

    @explaining_aborts()  # no fault of the disk's
    def _write(self, folder: Path, content: Mapping[str, Any]) -> None:
        tf.train.Checkpoint(**content).write(str(folder / CONTENT))

    def _cannot_write(self, error: Exception) -> CourseError:
        return CourseError(
            _("No checkpoint can be written to {path}: {reason}", path=self.path, reason=_reason(error)),
            allowed=_("a folder that can be written to, on a disk with room"),
            cure=_('Choose another folder, for example CheckpointFolder("checkpoints").'),
        )


@explaining_aborts()
def restore(saved: Saved, **content: Any) -> None:
    """Gives `content` the values of a checkpoint, whatever layout they were saved in.

    Args:
        saved: as from `CheckpointFolder.latest`. It may hold more, such as the slots of an optimizer.
        **content: as for `CheckpointFolder.save`.

    Raises:
        CourseError: the checkpoint holds nothing for a part of `content`, or variables of other shapes, or
            `content` lies on several meshes. Nothing was changed.
    """
    _require_one_mesh(content)
    _require_fit(saved, content)
    status = tf.train.Checkpoint(**content).read(str(saved.path / CONTENT))
    status.assert_existing_objects_matched().expect_partial()


def _require_fit(saved: Saved, content: Mapping[str, Any]) -> None:
    """Checks that a checkpoint holds each part of the content, and its variables in their shapes.

    TensorFlow would report success, and refuse every operation of this process from a later one on.
    """
    shapes = dict(tf.train.list_variables(str(saved.path / CONTENT)))
    variables = {name: part for name, part in _tracked(content) if hasattr(part, "shape")}
    there = sorted({key.split("/")[0] for key in shapes if "/." in key})
    here = sorted({name.split("/")[0] for name in variables})
    for part in here:
        if part not in there:
            raise CourseError(
                _("The checkpoint {path} holds no variables of {part!r}.", path=saved.path, part=part),
                allowed=_("a checkpoint that holds {parts}", parts=", ".join(here)),
                cure=_(
                    "Restore what it holds ({parts}) and leave {part!r} out: what is new begins anew.",
                    parts=", ".join(there),
                    part=part,
                ),
            )
    for name, variable in variables.items():
        shape = shapes.get(f"{name}/.ATTRIBUTES/VARIABLE_VALUE")
        if shape is not None and shape != list(variable.shape):
            raise CourseError(
                _(
                    "The checkpoint {path} does not fit: its {name} is {there}, here it is {here}.",
                    path=saved.path,
                    name=name,
                    there=shape,
                    here=list(variable.shape),
                ),
                allowed=_("variables with the names, shapes and dtypes of those that were saved"),
                cure=_("Make the model as it was when it was saved, or use another folder."),
            )


def _require_one_mesh(content: Mapping[str, Any]) -> None:
    """Checks that the DVariables of `content` lie on one mesh; ordinary variables may stand beside them.

    TensorFlow saves all of them in one operation, and the inputs of an operation must lie on one mesh.
    """
    variables = (part for _name, part in _tracked(content) if isinstance(part, dtensor.DVariable))
    meshes = {variable.layout.mesh.to_string(): variable.layout.mesh for variable in variables}
    if len(meshes) > 1:
        raise CourseError(
            _(
                "These variables lie on several meshes: {meshes}.",
                meshes="; ".join(str(mesh_spec(mesh)) for mesh in meshes.values()),
            ),
            allowed=_("variables on one mesh, and ordinary ones beside them, in one checkpoint"),
            cure=_("Give the variables of each mesh a folder of their own."),
        )


def _tracked(content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields each object in `content` with the name under which `tf.train.Checkpoint` saves it.

    Source: https://www.tensorflow.org/guide/checkpoint (Loading mechanics): the shortest path to it.
    """
    root = tf.train.Checkpoint(**content)
    view, waiting, seen = tf.train.TrackableView(root), deque([("", root)]), {id(root)}
    while waiting:
        path, part = waiting.popleft()
        yield path.removeprefix("/"), part
        for name, child in view.children(part).items():
            if id(child) not in seen:
                seen.add(id(child))
                waiting.append((f"{path}/{name.replace('.', '..').replace('/', '.S')}", child))


def _reason(error: Exception) -> str:
    """Returns what the system said; TensorFlow puts the operation before it, the file, and its name again."""
    if isinstance(error, tf.errors.OpError):
        return str(error.message).rpartition("; ")[2].partition(" [Op:")[0]
    return str(error)
