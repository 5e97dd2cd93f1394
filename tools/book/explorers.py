"""Writes what explorers and puzzles show on the book's pages, where no kernel answers."""

from __future__ import annotations

import inspect
import json
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path

import lessons
from course_lib.i18n import set_language
from course_lib.widgets.base import Explorer, table_file
from course_lib.widgets.table import page_table
from lessons.lesson_12_scaling_out.puzzle_widget import Puzzle
from lessons.lesson_12_scaling_out.puzzles import PUZZLES


def write_tables(
    languages: Iterable[str], folder: Path, makers: Iterable[Callable[[], Explorer | Puzzle]] | None = None
) -> None:
    """Writes the table of each explorer and puzzle, or of those given, in each language beside the module."""
    puzzles = (partial(Puzzle, number) for number in range(1, len(PUZZLES) + 1))
    makers = [*found(), *puzzles] if makers is None else list(makers)
    for language in languages:
        set_language(language)
        for widget in (make() for make in makers):
            text = json.dumps(page_table(widget), ensure_ascii=False, separators=(",", ":"))
            (folder / table_file(widget.name, language)).write_text(text, encoding="utf-8")


def found() -> Iterator[Callable[[], Explorer]]:
    """Yields the lessons' explorers that can be made without an argument, as a page makes them.

    They are in modules whose name ends in `explorer`.
    """
    for module in pkgutil.walk_packages(lessons.__path__, f"{lessons.__name__}."):
        if module.name.endswith("explorer"):
            for value in vars(import_module(module.name)).values():
                if _is_explorer(value) and value.__module__ == module.name and _needs_no_argument(value):
                    yield value


def _is_explorer(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, Explorer)


def _needs_no_argument(explorer: type[Explorer]) -> bool:
    _self, *parameters = inspect.signature(explorer.__init__).parameters.values()
    variadic = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return all(each.default is not each.empty or each.kind in variadic for each in parameters)
