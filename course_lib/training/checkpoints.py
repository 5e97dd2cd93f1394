"""Checkpoints that are whole or not there at all, whatever moment the process dies at."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_lib.errors import CourseError, CourseWarning
from course_lib.i18n import _, ngettext
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

CONTENT = "variables"  # the prefix of the files that `tf.train.Checkpoint` writes and reads
MANIFEST = "manifest.json"
_NAME = re.compile(r"checkpoint-\d+-step-\d+")
_UNFINISHED = "unfinished-"


@dataclass(frozen=True)
class Saved:
    """A whole checkpoint.

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


class CheckpointFolder:
    """A folder that keeps the newest whole checkpoints of one training.

    A checkpoint is written under another name, checked, forced to the disk, and only then renamed. Its
    manifest holds the size and the SHA-256 of each file, so that later damage is noticed.

    Attributes:
        path: the folder.
        keep: how many checkpoints are kept.
        damaged: the names of the checkpoints that the last `latest` had to pass over.

    Raises:
        CourseError: the folder cannot be made or written to, or `keep` is no whole number from 1.
    """

    def __init__(self, path: str | os.PathLike[str], keep: int = 3) -> None:
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise CourseError(
                _("{keep!r} checkpoints cannot be kept.", keep=keep),
                allowed=_("whole numbers from 1"),
                cure=_("The lessons keep 3."),
            )
        self.path = Path(path)
        self.keep = keep
        self.damaged: tuple[str, ...] = ()
        self.prepare()

    def prepare(self) -> None:
        """Makes the folder, sees that it can be written to, and clears what killed processes left.

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

    def names(self) -> tuple[str, ...]:
        """Returns the names of the checkpoints, oldest first, damaged ones included."""
        return tuple(sorted(entry.name for entry in self.path.iterdir() if _NAME.fullmatch(entry.name)))

    def save(self, step: int, facts: Mapping[str, Any], **content: Any) -> str:
        """Writes a checkpoint and returns its name.

        Args:
            step: the training step that `content` holds the state after.
            facts: what else belongs to it; anything that JSON can hold.
            **content: what `tf.train.Checkpoint` saves, by name.

        Raises:
            CourseError: the disk refused. The checkpoints that were there are untouched.
        """
        name = f"checkpoint-{self._next_number():06d}-step-{step:06d}"
        unfinished = self.path / f"{_UNFINISHED}{name}"
        try:
            unfinished.mkdir()
            tf.train.Checkpoint(**content).write(str(unfinished / CONTENT))
            _write_manifest(unfinished, step, facts)
            _force_to_disk(unfinished)
            read_saved(unfinished)
            unfinished.rename(self.path / name)
            _force_entry_to_disk(self.path)
            self._remove_all_but_newest()
        except (OSError, _DamageError, tf.errors.OpError) as error:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise self._cannot_write(error) from error
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
            except _DamageError as error:
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
        """
        saved = self.latest()
        if saved is not None:
            restore(saved, **content)
        return saved

    def _next_number(self) -> int:
        return 1 + max((int(name.split("-")[1]) for name in self.names()), default=0)

    def _remove_all_but_newest(self) -> None:
        whole = [name for name in self.names() if _is_whole(self.path / name)]
        for name in set(self.names()) - set(whole[-self.keep :]):
            shutil.rmtree(self.path / name)

    def _cannot_write(self, error: Exception) -> CourseError:
        return CourseError(
            _("No checkpoint can be written to {path}: {reason}", path=self.path, reason=error),
            allowed=_("a folder that can be written to, on a disk with room"),
            cure=_('Choose another folder, for example CheckpointFolder("checkpoints").'),
        )


class _DamageError(Exception):
    """Says what is wrong with a checkpoint on the disk."""


def restore(saved: Saved, **content: Any) -> None:
    """Gives `content` the values of a checkpoint, whatever layout they were saved in.

    Args:
        saved: as from `CheckpointFolder.latest`.
        **content: as for `CheckpointFolder.save`.
    """
    tf.train.Checkpoint(**content).read(str(saved.path / CONTENT)).assert_consumed()


def read_saved(path: Path) -> Saved:
    """Returns the checkpoint in a folder, having compared every file with the manifest.

    Raises:
        _DamageError: something is missing, cut off or changed.
    """
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        body = manifest["body"]
        if manifest["sha256"] != _digest(_canonical(body)):
            raise _DamageError(_("{file} was changed", file=MANIFEST))
        for file, expected in body["files"].items():
            _compare(path / file, expected)
        return Saved(path, body["step"], body["facts"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _DamageError(_("{file} cannot be read", file=MANIFEST)) from error


def _compare(file: Path, expected: Mapping[str, Any]) -> None:
    if not file.is_file():
        raise _DamageError(_("{file} is missing", file=file.name))
    if file.stat().st_size != expected["bytes"]:
        raise _DamageError(
            ngettext(
                "{file} has {count} byte, not {wanted} as written",
                "{file} has {count} bytes, not {wanted} as written",
                file.stat().st_size,
                file=file.name,
                wanted=expected["bytes"],
            )
        )
    if _digest(file.read_bytes()) != expected["sha256"]:
        raise _DamageError(_("{file} was changed", file=file.name))


def _is_whole(path: Path) -> bool:
    try:
        read_saved(path)
    except _DamageError:
        return False
    return True


def _write_manifest(path: Path, step: int, facts: Mapping[str, Any]) -> None:
    files = {
        file.name: {"bytes": file.stat().st_size, "sha256": _digest(file.read_bytes())}
        for file in sorted(path.iterdir())
    }
    body = {"step": step, "facts": dict(facts), "files": files}
    manifest = {"sha256": _digest(_canonical(body)), "body": body}
    (path / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _canonical(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, sort_keys=True).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _force_to_disk(folder: Path) -> None:
    for file in folder.iterdir():
        with file.open("rb+") as opened:
            os.fsync(opened.fileno())
    _force_entry_to_disk(folder)


def _force_entry_to_disk(folder: Path) -> None:
    """Makes sure that the names in a folder survive a loss of power; Windows does it by itself."""
    if os.name != "nt":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


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
