"""The lessons: in which parts they lie, in which order they are read, and so which number each has.

Lessons are found as plug-ins are: the package `lessons` is looked up where it is installed, and its
`order.toml` names the topics. Here the library meets lessons: `module` imports what is theirs.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGE, ORDER = "lessons", "order.toml"


@dataclass(frozen=True)
class Place:
    """The place of a lesson among all.

    Attributes:
        topic: what the lesson is called everywhere: its folder, cards, exercises, page.
        part: the part of the course that it belongs to.
        number: how many lessons come before it, such as "4"; in an appendix "A1".
        about: what it teaches, in a sentence.
        folder: where all that belongs to it lies.
        is_appendix: whether it runs in the environment of the appendices, without course_lib.
    """

    topic: str
    part: str
    number: str
    about: str
    folder: Path
    is_appendix: bool = False

    @property
    def notebook(self) -> str:
        """The file name of its notebooks, which folders list in the order of the lessons."""
        return f"{self.number.rjust(2, '0')}_{self.topic}.ipynb"


@dataclass(frozen=True)
class Part:
    """A part of the course, with its title and its lessons in order."""

    name: str
    title: str
    places: tuple[Place, ...]


_parsed = cache(tomllib.loads)


def parts(lessons: Path) -> tuple[Part, ...]:
    """Returns the parts of the course whose lessons lie in a folder, in order.

    Raises:
        FileNotFoundError: the folder has no `order.toml`.
        ValueError: it is no TOML.
    """
    told = _parsed((lessons / ORDER).read_text("utf-8"))
    found: list[Part] = []
    number = told["first_number"]
    for name, part in told["parts"].items():
        letter = part.get("letter", "")
        first = 1 if letter else number
        places = tuple(
            Place(topic, name, f"{letter}{at}", about, lessons / name / topic, is_appendix=bool(letter))
            for at, (topic, about) in enumerate(part["lessons"].items(), start=first)
        )
        number += 0 if letter else len(places)
        found.append(Part(name, part["title"], places))
    return tuple(found)


def folders() -> list[Path]:
    """Returns the folders in which lessons are installed beside this library."""
    package = find_spec(PACKAGE)
    return [Path(folder) for folder in package.submodule_search_locations or ()] if package else []


def installed() -> tuple[Place, ...]:
    """Returns the places of the lessons that are installed beside this library."""
    return tuple(place for folder in folders() for part in parts(folder) for place in part.places)


def find(topic: object) -> Place | None:
    """Returns the place of an installed lesson; None where there is none of that topic."""
    return next((place for place in installed() if place.topic == topic), None)


def module(name: str) -> Any:
    """Returns a module of an installed lesson, such as "all_reduce.ring", whatever its part."""
    topic, _dot, inner = name.partition(".")
    part = next((place.part for place in installed() if place.topic == topic), "")
    return import_module(".".join(filter(None, (PACKAGE, part, topic, inner))))
