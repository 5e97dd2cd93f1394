"""Writes what explorers, puzzles and cards show on the book's pages, where no kernel answers."""

from __future__ import annotations

import inspect
import json
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import lessons
from course_lib import syllabus
from course_lib.exercises.cards import Card
from course_lib.exercises.questions import predictions
from course_lib.i18n import set_language
from course_lib.widgets.base import Explorer, TreeWidget


def write_tables(
    languages: Iterable[str], folder: Path, makers: Mapping[str, Callable[[], TreeWidget]] | None = None
) -> None:
    """Writes the tables of each widget, by default of all, in each language beside the module."""
    makers = makers or {**widgets(), **cards()}
    for language in languages:
        set_language(language)
        for make in makers.values():
            for file, table in make().page_tables():
                text = json.dumps(table, ensure_ascii=False, separators=(",", ":"))
                (folder / file).write_text(text, encoding="utf-8")


def widgets() -> dict[str, Callable[[], TreeWidget]]:
    """Returns what makes each widget that a page can hold, by its name.

    They are the explorers in lessons' modules whose name ends in `explorer` or `widget`, which need no
    argument, and what such a module lists as `ON_PAGES`.
    """
    found: dict[str, Callable[[], TreeWidget]] = {}
    for place in pkgutil.walk_packages(lessons.__path__, f"{lessons.__name__}."):
        if place.name.endswith(("explorer", "widget")):
            module = import_module(place.name)
            found |= {explorer.name: explorer for explorer in _explorers(module)}
            found |= getattr(module, "ON_PAGES", {})
    return found


def cards() -> dict[str, Callable[[], TreeWidget]]:
    """Returns what makes the card of each prediction of a lesson, by its name."""
    questions = (question for place in syllabus.installed() for question in predictions(place.topic))
    return {question.question_id: partial(Card, question) for question in questions}


def _explorers(module: Any) -> Iterator[type[Explorer]]:
    """Yields the explorers that a module defines."""
    for value in vars(module).values():
        if inspect.isclass(value) and issubclass(value, Explorer) and value.__module__ == module.__name__:
            yield value
