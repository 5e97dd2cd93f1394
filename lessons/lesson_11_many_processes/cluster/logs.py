"""What a task writes: kept in files, from which its own lines can be told."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

MARKER = "course: "  # how lines begin that are for the reader; all others are TensorFlow's, or Python's

_LAST_OF_STDOUT, _LAST_OF_STDERR = 12, 3
# What TensorFlow says at every start, such as that there is no GPU: beside it a reader misses what is new.
_NO_NEWS = re.compile(r"I\d{4} |\d{4}-\d\d-\d\d [\d:.]+: I |WARNING: All log messages before absl")


@dataclass(frozen=True, repr=False)
class Written:
    """All that a task wrote; it shows stdout, then stderr."""

    stdout: str
    stderr: str

    def __repr__(self) -> str:
        return self.stdout + self.stderr


def told(output: str) -> list[str]:
    r"""Returns the lines of an output that a program marked as its own, without the mark.

    >>> told("W0000 gRPC is up\ncourse: step 1 loss 2.3026\n")
    ['step 1 loss 2.3026']
    """
    return [line.removeprefix(MARKER) for line in output.splitlines() if line.startswith(MARKER)]


class Log:
    """The two files that a task writes, run after run.

    Args:
        folder: where they are.
        task: its name, such as "worker 1".
    """

    def __init__(self, folder: Path, task: str) -> None:
        self.stdout, self.stderr = (folder / f"{task.replace(' ', '-')}.{end}" for end in ("out", "err"))
        self._starts = self._stderr_starts = 0  # of the present run, in bytes
        for path in (self.stdout, self.stderr):
            path.touch()

    def begin(self, note: str) -> None:
        """Begins another run: lines of earlier ones are kept, and `note` stands between."""
        with self.stdout.open("ab") as file:
            file.write(f"\n{MARKER}{note}\n".encode())
        self._starts, self._stderr_starts = (path.stat().st_size for path in (self.stdout, self.stderr))

    def lines(self) -> list[str]:
        """Returns the lines that the task's program marked as its own, without the mark."""
        return told(_read(self.stdout))

    def written(self) -> Written:
        """Returns all that the task wrote."""
        return Written(_read(self.stdout), _read(self.stderr))

    def last_words(self) -> str:
        """Returns the last line on stderr of a run that has no line of its own; "" where there is either."""
        if f"\n{MARKER}".encode() in b"\n" + self.stdout.read_bytes()[self._starts :]:
            return ""
        written = self.stderr.read_bytes()[self._stderr_starts :].decode(errors="replace")
        return next((line.strip() for line in reversed(written.splitlines()) if line.strip()), "")

    def tail(self) -> list[str]:
        """Returns the last lines: of stdout more, the marked ones without their mark; of stderr few."""
        said = [line.removeprefix(MARKER) for line in _read(self.stdout).splitlines()]
        news = [line for line in _read(self.stderr).splitlines() if not _NO_NEWS.match(line)]
        return said[-_LAST_OF_STDOUT:] + news[-_LAST_OF_STDERR:]

    def end_of(self, words: str) -> int | None:
        """Returns where the present run's first own line with these words ends; None before there is one."""
        place = self._starts
        for line in self.stdout.read_bytes()[self._starts :].splitlines(keepends=True):
            place += len(line)
            text = line.decode(errors="replace")
            if text.startswith(MARKER) and words in text and text.endswith("\n"):
                return place
        return None

    def cut(self, place: int) -> None:
        """Drops what was written to stdout after a place."""
        with self.stdout.open("ab") as file:
            file.truncate(place)


def _read(path: Path) -> str:
    return path.read_text(errors="replace")
