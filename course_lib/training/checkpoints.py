"""Checkpoints that are whole or not there at all, whatever moment the process dies at."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course_lib.aborts import explaining_aborts
from course_lib.errors import CourseError, CourseWarning, whole_number
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.training.content import require_fit, require_one_mesh
from course_lib.training.saved import (
    CONTENT,
    DamageError,
    Saved,
    force_entry_to_disk,
    force_to_disk,
    is_whole,
    names_in,
    read_saved,
    warning_about,
    write_manifest,
)

tf = start_tensorflow()

_UNFINISHED = "unfinished-"


class CheckpointFolder:
    """A folder that keeps the newest whole checkpoints of one training.

    A checkpoint is written under another name, checked, forced to the disk, and only then renamed. Its
    manifest holds the size and the SHA-256 of each file, so that later damage is noticed.

    Making the object reads and writes nothing: another process may be training into the folder, or the
    folder may be read-only. The first `save`, or a training that starts, calls `prepare`.

    Attributes:
        path: the folder.
        keep: how many checkpoints are kept.
        damaged: the names of the checkpoints that the last `latest` had to pass over.

    Raises:
        CourseError: no folder is named, or `keep` is no whole number from 1.
    """

    def __init__(self, path: str | os.PathLike[str], keep: int = 3) -> None:
        self.path = _checked_path(path)
        self.keep = whole_number(
            keep, _("{keep!r} checkpoints cannot be kept.", keep=keep), least=1, cure=_("The lessons keep 3.")
        )
        self.damaged: tuple[str, ...] = ()
        self._prepared = False

    def prepare(self) -> None:
        """Makes the folder, sees that it can be written to, and clears what killed processes left.

        Only for who trains into the folder: what another process is writing there goes, too.

        Raises:
            CourseError: it cannot be made or written to.
        """
        probe = self.path / f"{_UNFINISHED}probe"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for leftover in self.path.glob(f"{_UNFINISHED}*"):
                shutil.rmtree(leftover)
            probe.mkdir()
            (probe / "byte").write_bytes(b"1")
            shutil.rmtree(probe)
        except OSError as error:
            raise self._cannot_write(error) from error
        self._prepared = True

    def names(self) -> tuple[str, ...]:
        """Returns the names of the checkpoints, oldest first, damaged ones included."""
        return names_in(self.path)

    def save(self, step: int, facts: Mapping[str, Any], **content: Any) -> str:
        """Writes a checkpoint and returns its name.

        Where somebody deleted the folder meanwhile, it is made again: what was trained matters more.

        Args:
            step: the training step that `content` holds the state after.
            facts: what else belongs to it; anything that JSON can hold.
            **content: what `tf.train.Checkpoint` saves, by name.

        Raises:
            CourseError: the disk refused, `content` lies on several meshes, or the devices can no longer send
                each other data. The checkpoints that were there are untouched.
        """
        require_one_mesh(content)
        if not self._prepared:
            self.prepare()
        name = self._name(step)
        unfinished = self._unfinished(name)
        try:
            unfinished.mkdir(parents=True)
            self._write(unfinished, content)
            write_manifest(unfinished, step, facts)
            force_to_disk(unfinished)
            read_saved(unfinished)
            unfinished.rename(self.path / name)
        except (OSError, DamageError, tf.errors.OpError) as error:
            raise self._cannot_write(error) from error
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        with warning_about(self.path / name):
            force_entry_to_disk(self.path)
            self._remove_all_but_newest()
        return name

    def latest(self) -> Saved | None:
        """Returns the newest whole checkpoint, or None if there is none.

        Damaged ones that are newer are listed in `damaged`, and a `CourseWarning` says so.
        """
        damaged: list[str] = []
        found = None
        for name in reversed(self.names()):
            try:
                found = read_saved(self.path / name)
                break
            except DamageError as error:
                damaged.append(name)
                reason = str(error)
        self.damaged = tuple(damaged)
        if damaged:
            _warn_of_damage(damaged[0], reason, found)
        return found

    def restore_latest(self, **content: Any) -> Saved | None:
        """Gives `content` the values of the newest whole checkpoint, whatever layout they were saved in.

        Args:
            **content: as for `save`.

        Returns:
            The checkpoint, or None if there is none: then `content` is as it was.

        Raises:
            CourseError: the checkpoint holds other variables, or others in shape or dtype; `content` is as it
                was.
        """
        saved = self.latest()
        if saved is not None:
            restore(saved, **content)
        return saved

    def _name(self, step: int) -> str:
        """Returns the name of the next checkpoint."""
        return self._numbered(1 + self._newest_number(), step)

    def _newest_number(self) -> int:
        """Returns the number of the newest checkpoint, damaged or not; 0 if there is none."""
        return max((int(name.split("-")[1]) for name in self.names()), default=0)

    def _numbered(self, number: int, step: int) -> str:
        return f"checkpoint-{number:06d}-step-{step:06d}"

    def _unfinished(self, name: str) -> Path:
        """Returns the folder of a checkpoint while it is written."""
        return self.path / f"{_UNFINISHED}{name}"

    @explaining_aborts()  # no fault of the disk's
    def _write(self, folder: Path, content: Mapping[str, Any]) -> None:
        tf.train.Checkpoint(**content).write(str(folder / CONTENT))

    def _remove_all_but_newest(self) -> None:
        whole = [name for name in self.names() if is_whole(self.path / name)]
        for name in set(self.names()) - set(whole[-self.keep :]):
            shutil.rmtree(self.path / name)

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
        saved: as from `CheckpointFolder.latest`.
        **content: as for `CheckpointFolder.save`.

    Raises:
        CourseError: the checkpoint holds other variables, or others in shape or dtype, or `content` lies on
            several meshes. Nothing was changed.
    """
    require_one_mesh(content)
    require_fit(saved, content)
    tf.train.Checkpoint(**content).read(str(saved.path / CONTENT)).assert_consumed()


def _checked_path(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise CourseError(
            _("{path!r} does not name a folder for checkpoints.", path=path),
            allowed=_("a folder that can be written to, on a disk with room"),
            cure=_('Choose another folder, for example CheckpointFolder("checkpoints").'),
        )
    return Path(path)


def _reason(error: Exception) -> str:
    """Returns what the system said; TensorFlow puts the operation before it, the file, and its name again."""
    if isinstance(error, tf.errors.OpError):
        return str(error.message).rpartition("; ")[2].partition(" [Op:")[0]
    return str(error)


def _warn_of_damage(name: str, reason: str, found: Saved | None) -> None:
    problem = _("The checkpoint {name} is damaged ({reason}).", name=name, reason=reason)
    outcome = (
        _("No whole checkpoint is left: training starts from the beginning.")
        if found is None
        else _(
            "{name} is used instead: training continues after step {step}.", name=found.name, step=found.step
        )
    )
    warnings.warn(f"{problem} {outcome}", CourseWarning, stacklevel=4)
