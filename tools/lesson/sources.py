"""Lessons as their authors write them: percent scripts in folders of their own, read into cells.

Their order, parts and numbers are those of `lessons/order.toml`. Appendices are written as lessons are, and
run in an environment of their own, without course_lib (tools/environments/estimator.py).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode

from course_lib import syllabus
from course_lib.exercises import questions
from course_lib.syllabus import Part, Place
from tools.lesson import references
from tools.lesson.cells import Cell, named

SOURCE_LANGUAGE = "en"
SOURCE = "lesson.py"  # of a topic: lessons/part/topic/lesson.py
_GITHUB = "https://github.com/"
_CARD = re.compile(r"(predict|check)-(.+)")  # names of cards: `course_lib.exercises.questions`
_OF_JUPYTEXT = ("lines_to_next_cell", "lines_to_end_of_cell_marker")


class LessonError(Exception):
    """A lesson cannot be built: the message names the lesson, the cell and the rule."""


@dataclass(frozen=True)
class Lesson:
    """A lesson or an appendix: its place among all, and its cells."""

    place: Place
    cells: tuple[Cell, ...]

    @property
    def topic(self) -> str:
        """What it is called everywhere, such as "a_run"; ids of its cards begin with it."""
        return self.place.topic

    @property
    def is_appendix(self) -> bool:
        """Whether it runs in the environment of the appendices, without course_lib."""
        return self.place.is_appendix

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
    """

    root: Path
    repository: str = ""
    branch: str = "main"
    _cache: dict[str, Lesson] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def here(cls) -> Course:
        """Returns the course in the current folder."""
        root = Path()
        settings: dict[str, str] = {}
        if (root / "pyproject.toml").exists():
            settings = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["course"]
        return cls(root, settings.get("repository", "").rstrip("/"), settings.get("branch", "main"))

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
    def parts(self) -> tuple[Part, ...]:
        """The parts of the course, in order."""
        try:
            return syllabus.parts(self.root / "lessons")
        except ValueError as error:
            raise LessonError(str(error)) from error

    @property
    def places(self) -> tuple[Place, ...]:
        """The places of the lessons and appendices, in order."""
        return tuple(place for part in self.parts for place in part.places)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of the lessons, in order, without the appendices."""
        return tuple(place.topic for place in self.places if not place.is_appendix)

    def place(self, topic: str) -> Place:
        """Returns the place of a lesson or an appendix.

        Raises:
            LessonError: the order has none of that topic.
        """
        for place in self.places:
            if place.topic == topic:
                return place
        raise LessonError(f"`lessons/{syllabus.ORDER}` has no lesson {topic!r}")

    def lessons(self, topics: tuple[str, ...] = ()) -> Iterator[Lesson]:
        """Yields the lessons and appendices of these topics; all where none is given.

        Raises:
            LessonError: there is no lesson of such a topic, or a folder that the order does not name.
        """
        chosen = topics or tuple(place.topic for place in self.places)
        places = [self.place(topic) for topic in chosen]
        sources = {path.parent for path in (self.root / "lessons").glob(f"*/*/{SOURCE}")}
        if strangers := sorted(sources - {place.folder for place in self.places}):
            raise LessonError(f"`lessons/{syllabus.ORDER}` does not name {strangers[0]}")
        yield from (self.lesson(place.topic) for place in places)

    def lesson(self, topic: str) -> Lesson:
        """Returns the lesson of that topic, read once."""
        if topic not in self._cache:
            self._cache[topic] = read_lesson(self.place(topic))
        return self._cache[topic]

    def folder(self, topic: str) -> Path:
        """Returns the folder of a lesson."""
        return self.place(topic).folder

    def catalogue(self, language: str, topic: str) -> Path:
        """Returns the path of a lesson's catalogue."""
        return self.folder(topic) / f"{language}.po"

    def shared_catalogue(self, language: str) -> Path:
        """Returns the path of the catalogue of the words that are in every notebook."""
        return self.root / "lessons" / "locale" / language / "shared.po"

    def notebook(self, language: str, topic: str) -> Path:
        """Returns the path of a built notebook."""
        return self.root / "notebooks" / language / self.place(topic).notebook

    def strangers(self, language: str) -> list[Path]:
        """Returns the notebooks that belong to no lesson, or bear the number that it had before."""
        ours = {place.notebook for place in self.places}
        there = sorted((self.root / "notebooks" / language).glob("*.ipynb"))
        return [path for path in there if path.name not in ours]

    def title(self, language: str, topic: str) -> str:
        """Returns the title that the built notebook of a lesson has."""
        first = nbformat.read(self.notebook(language, topic), 4).cells[0].source
        return str(re.findall(r"^# (.+)$", first, re.M)[0])

    def resolved(self, text: str, translate: Callable[[str], str]) -> str:
        """Returns a text with the numbers of the lessons that it refers to, such as {lesson:a_run}.

        Raises:
            LessonError: there is no such lesson, or a reference is misspelt.
        """
        try:
            return references.resolved(text, self.places, translate)
        except LookupError as error:
            raise LessonError(str(error)) from error

    def colab_address(self, language: str, topic: str) -> str:
        """Returns where a lesson opens in Colab.

        It is "" while the course has no public address on GitHub, and for appendices: Colab's only kernel has
        a later TensorFlow than theirs.
        """
        if self.place(topic).is_appendix or not self.repository.startswith(_GITHUB):
            return ""
        path = self.notebook(language, topic).relative_to(self.root).as_posix()
        repository = self.repository.removeprefix(_GITHUB)
        return f"https://colab.research.google.com/github/{repository}/blob/{self.branch}/{path}"


def read_lesson(place: Place) -> Lesson:
    """Returns the lesson that a percent script in its folder holds.

    Raises:
        LessonError: there is no script, a header says more than a name and tags, or a card cannot be read.
    """
    path = place.folder / SOURCE
    if not path.exists():
        raise LessonError(f"{place.topic}: `lessons/{syllabus.ORDER}` names it, and there is no {path}")
    notebook = jupytext.reads(path.read_text("utf-8"), fmt="py:percent")
    try:
        cells = tuple(_cell(cell, place.topic) for cell in notebook.cells)
    except LessonError as error:
        raise LessonError(f"{place.topic}: {error}") from error
    return Lesson(place, named(cells))


def _cell(cell: NotebookNode, topic: str) -> Cell:
    header = {key: value for key, value in cell.metadata.items() if key not in _OF_JUPYTEXT}
    if header.keys() - {"title", "tags"}:
        raise LessonError(
            f"the cell {cell.source[:40]!r} has {sorted(header)} in its header; write `# %% name` or "
            '`# %% name [markdown]`, and tags=["error"] where it shows an error.'
        )
    name, text = header.get("title", ""), cell.source.strip("\n")
    card = _CARD.match(name) if cell.cell_type == "markdown" else None
    if card:
        return Cell("code", _call(f"{topic}-{card[2]}", card[1], text), name, asked=text)
    return Cell(cell.cell_type, text, name, tuple(header.get("tags", ())))


def _call(question_id: str, part: str, text: str) -> str:
    """Returns the code of a card: the call that shows it."""
    try:
        question = questions.parsed(text).source
    except ValueError as error:
        raise LessonError(f"the card {question_id!r}: {error}") from error
    return (
        f'predict("{question_id}")' if part == "predict" else f'check("{question_id}", {question.strip("`")})'
    )
