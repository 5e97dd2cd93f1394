"""Translations as a build reads them: the reader's text for each English one."""

from __future__ import annotations

from collections.abc import Callable

import polib

from tools.lesson.sources import SOURCE_LANGUAGE, Course


def translations(course: Course, language: str, name: str) -> Callable[[str], str]:
    """Returns what gives the reader's text for an English one: the English where there is none."""
    if language == SOURCE_LANGUAGE:
        return lambda english: english
    known: dict[str, str] = {}
    for path in (course.shared_catalogue(language), course.catalogue(language, name)):
        if path.exists():
            entries = [entry for entry in polib.pofile(path.read_text("utf-8")) if entry.translated()]
            known |= {entry.msgid: entry.msgstr for entry in entries}
    return lambda english: known.get(english, english)
