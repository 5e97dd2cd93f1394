"""Translations as a build reads them: the reader's text for each English one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polib

from tools.lesson.sources import SOURCE_LANGUAGE, Course

SHARED = "shared"


def translations(course: Course, language: str, name: str) -> Callable[[str], str]:
    """Returns what gives the reader's text for an English one of a lesson, else the English."""
    if language == SOURCE_LANGUAGE:
        return lambda english: english
    return read_translations(course.catalogue(language, SHARED), course.catalogue(language, name))


def read_translations(*paths: Path) -> Callable[[str], str]:
    """Returns what gives the text that these catalogues have for an English one; later ones win."""
    known: dict[str, str] = {}
    for path in paths:
        if path.exists():
            entries = [entry for entry in polib.pofile(path.read_text("utf-8")) if entry.translated()]
            known |= {entry.msgid: entry.msgstr for entry in entries}
    return lambda english: known.get(english, english)
