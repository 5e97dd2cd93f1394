"""Lessons as their authors write them: percent scripts in folders of their own, read into cells.

Appendices are written as lessons are. They run in an environment of their own, without course_lib
(tools/environments/estimator.py).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jupytext
from nbformat import NotebookNode

from course_lib.exercises import asked
from tools.lesson.cells import Cell, named

SOURCE_LANGUAGE = "en"
FOLDER, SOURCE = "lesson_", "lesson.py"  # of the lesson "05_topic": lessons/lesson_05_topic/lesson.py
_GITHUB = "https://github.com/"
_APPENDIX = re.compile(r"A\d+_")
_CARD = re.compile(r"(predict|check)-(.+)")  # a text of such a name is a card: `course_lib.exercises.asked`
_OF_JUPYTEXT = ("lines_to_next_cell", "lines_to_end_of_cell_marker")


class LessonError(Exception):
    """A lesson cannot be built: the message names the lesson, the cell and the rule."""


def is_appendix(name: str) -> bool:
    """Returns whether a lesson is an appendix, such as "A1_estimators"."""
    return bool(_APPENDIX.match(name))


@dataclass(frozen=True)
class Lesson:
    """A lesson or an appendix: its name, such as "01_mesh_and_layout" or "A1_estimators", and its cells."""

    name: str
    cells: tuple[Cell, ...]

    @property
    def number(self) -> str:
        """The two digits that its name and the ids of its exercises begin with."""
        return self.name.split("_", 1)[0]

    @property
    def is_appendix(self) -> bool:
        """Whether it runs in the environment of the appendices, without course_lib."""
        return is_appendix(self.name)

    def following(self) -> Iterator[tuple[Cell, Cell | None]]:
        """Yields each cell with the one after it."""
        return zip(self.cells, [*self.cells[1:], None], strict=True)


@dataclass(frozen=True)
class Course:
    """Where the sources, the catalogues and the notebooks of a course lie.

    Attributes:
        root: the folder that holds `lessons` and `notebooks`.
        repository: the public address, "" while there is none.
        branch: the branch that public links point to.
        wide_code: the lessons whose lines of code may still be wider than the book's column.
    """

    root: Path
    repository: str = ""
    branch: str = "main"
    wide_code: tuple[str, ...] = ()
    _cache: dict[str, Lesson] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def here(cls) -> Course:
        """Returns the course in the current folder."""
        root = Path()
        settings: dict[str, Any] = {}
        if (root / "pyproject.toml").exists():
            settings = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["course"]
        return cls(
            root,
            settings.get("repository", "").rstrip("/"),
            settings.get("branch", "main"),
            tuple(settings.get("wide_code", ())),
        )

    @property
    def translations(self) -> tuple[str, ...]:
        """The languages that have a folder of catalogues."""
        folders = (self.root / "lessons" / "locale").glob("*")
        return tuple(sorted(path.name for path in folders if path.is_dir()))

    @property
    def languages(self) -> tuple[str, ...]:
        """The source language, then the translations."""
        return (SOURCE_LANGUAGE, *self.translations)

    @property
    def lesson_names(self) -> tuple[str, ...]:
        """The names of the lessons, in order, without the appendices."""
        return tuple(name for name in self.names if not is_appendix(name))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the lessons, then those of the appendices."""
        sources = (self.root / "lessons").glob(f"{FOLDER}*/{SOURCE}")
        return tuple(sorted(path.parent.name.removeprefix(FOLDER) for path in sources))

    def lessons(self, names: tuple[str, ...] = ()) -> Iterator[Lesson]:
        """Yields the lessons and appendices of these names; of all where none is given.

        Raises:
            LessonError: there is no lesson of such a name, or none at all.
        """
        unknown = set(names) - set(self.names)
        if unknown or not self.names:
            raise LessonError(f"the folder `lessons` has no lesson {', '.join(sorted(unknown))}".rstrip())
        yield from (self.lesson(name) for name in names or self.names)

    def lesson(self, name: str) -> Lesson:
        """Returns the lesson of that name, read once."""
        if name not in self._cache:
            self._cache[name] = read_lesson(name, self.folder(name) / SOURCE)
        return self._cache[name]

    def folder(self, name: str) -> Path:
        """Returns the folder of a lesson."""
        return self.root / "lessons" / f"{FOLDER}{name}"

    def catalogue(self, language: str, name: str) -> Path:
        """Returns the path of a lesson's catalogue."""
        return self.folder(name) / f"{language}.po"

    def shared_catalogue(self, language: str) -> Path:
        """Returns the path of the catalogue of the words that are in every notebook."""
        return self.root / "lessons" / "locale" / language / "shared.po"

    def notebook(self, language: str, name: str) -> Path:
        """Returns the path of a built notebook."""
        return self.root / "notebooks" / language / f"{name}.ipynb"

    def colab_address(self, language: str, name: str) -> str:
        """Returns where a lesson opens in Colab.

        It is "" while the course has no public address on GitHub, and for appendices: Colab's only kernel has
        a later TensorFlow than theirs.
        """
        if is_appendix(name) or not self.repository.startswith(_GITHUB):
            return ""
        path = self.notebook(language, name).relative_to(self.root).as_posix()
        repository = self.repository.removeprefix(_GITHUB)
        return f"https://colab.research.google.com/github/{repository}/blob/{self.branch}/{path}"


def read_lesson(name: str, path: Path) -> Lesson:
    """Returns the lesson of that name, which a percent script holds.

    Raises:
        LessonError: a header says more than a name and tags, or a card cannot be read.
    """
    notebook = jupytext.reads(path.read_text("utf-8"), fmt="py:percent")
    try:
        cells = tuple(_cell(cell, name.split("_", 1)[0]) for cell in notebook.cells)
    except LessonError as error:
        raise LessonError(f"{name}: {error}") from error
    return Lesson(name, named(cells))


def _cell(cell: NotebookNode, number: str) -> Cell:
    header = {key: value for key, value in cell.metadata.items() if key not in _OF_JUPYTEXT}
    if header.keys() - {"title", "tags"}:
        raise LessonError(
            f"the cell {cell.source[:40]!r} has {sorted(header)} in its header; write `# %% name` or "
            '`# %% name [markdown]`, and tags=["error"] where it shows an error.'
        )
    name, text = header.get("title", ""), cell.source.strip("\n")
    card = _CARD.match(name) if cell.cell_type == "markdown" else None
    if card:
        return Cell("code", _call(f"{number}-{card[2]}", card[1], text), name, asked=text)
    return Cell(cell.cell_type, text, name, tuple(header.get("tags", ())))


def _call(question_id: str, part: str, text: str) -> str:
    """Returns the code of a card: the call that shows it."""
    try:
        question = asked.parsed(text).question
    except ValueError as error:
        raise LessonError(f"the card {question_id!r}: {error}") from error
    return (
        f'predict("{question_id}")' if part == "predict" else f'check("{question_id}", {question.strip("`")})'
    )
