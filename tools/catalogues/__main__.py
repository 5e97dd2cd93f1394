"""Keeps the translation catalogues in step with the English, and holds the translations against their rules.

python -m tools.catalogues extract    brings every catalogue up to date
python -m tools.catalogues check      lists what is missing, fuzzy, stale or against a rule
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import polib

from tools.catalogues import files
from tools.catalogues.faults import faults, start
from tools.catalogues.files import Text
from tools.catalogues.texts import catalogues
from tools.lesson.sources import Course, LessonError

_IS_LOOKED_UP = re.compile(r"^(predict|check)-|\.py$")  # whose texts are looked up when a cell runs
_IS_SPOKEN = re.compile(r"course_lib/locale/|lessons/(?!locale/)")  # of the library, a part or a lesson


def extract(course: Course) -> Iterator[str]:
    """Brings every catalogue up to date and yields a line about each.

    Raises:
        LessonError: a text that no translator would see.
    """
    texts_by_path = catalogues(course)
    for language in course.translations:
        wanted = _in_language(course, texts_by_path, language)
        elsewhere = [entry for path in wanted for entry in files.read(path, language)]
        for path, texts in wanted.items():
            catalogue = files.updated(files.read(path, language), texts, language, elsewhere)
            files.write(catalogue, path)
            fuzzy, missing = len(catalogue.fuzzy_entries()), len(catalogue.untranslated_entries())
            yield f"{_short(course, path)}: {len(catalogue)} texts, {fuzzy} fuzzy, {missing} missing"


def check(course: Course) -> Iterator[str]:
    """Yields every fault of every catalogue.

    Raises:
        LessonError: a text that no translator would see.
    """
    texts_by_path = catalogues(course)
    for language in course.translations:
        wanted = _in_language(course, texts_by_path, language)
        for path, texts in wanted.items():
            old = files.read(path, language)
            new = files.updated(old, texts, language)
            for fault in chain(_stale(old, new, path), faults(course, language, new)):
                yield f"{_short(course, path)}: {fault}"
        yield from _said_otherwise(course, wanted, language)


def _said_otherwise(course: Course, wanted: dict[Path, list[Text]], language: str) -> Iterator[str]:
    """Yields texts that running code looks up, in which the first catalogue's words hide another's."""
    texts = chain.from_iterable(wanted.values())
    looked_up = {text.english for text in texts if _IS_LOOKED_UP.search(text.place)}
    first: dict[str, tuple[str, str]] = {}
    for path in sorted(path for path in wanted if _IS_SPOKEN.search(path.as_posix())):
        for entry in files.read(path, language):
            if entry.msgid in looked_up:
                said = entry.msgstr or str(entry.msgstr_plural)
                place, before = first.setdefault(entry.msgid, (_short(course, path), said))
                if said != before:
                    yield f"{_short(course, path)}: {start(entry.msgid)} is {before!r} in {place}"


def _in_language(course: Course, texts: dict[str, list[Text]], language: str) -> dict[Path, list[Text]]:
    return {course.root / path.format(language=language): of_one for path, of_one in texts.items()}


def _stale(old: polib.POFile, new: polib.POFile, path: Path) -> Iterator[str]:
    known, wanted = {entry.msgid for entry in old}, {entry.msgid for entry in new}
    for english in sorted(wanted - known):
        yield f"stale, this text is not in it (run extract): {start(english)}"
    for english in sorted(known - wanted):
        yield f"stale, this text is gone (run extract): {start(english)}"
    if known == wanted and not files.is_written(new, path):
        yield "stale, order, places, flags or line breaks changed (run extract)"


def _short(course: Course, path: Path) -> str:
    return path.relative_to(course.root).as_posix()


def main() -> int:
    """Runs the command line and returns its exit status."""
    arguments = argparse.ArgumentParser(prog="tools.catalogues", description=__doc__)
    arguments.add_argument("action", choices=["extract", "check"])
    course = Course.here()
    try:
        if arguments.parse_args().action == "extract":
            for line in extract(course):
                print(line)
            return 0
        found = list(check(course))
    except LessonError as error:
        found = [str(error)]
    print("\n".join(found) or "The catalogues are complete.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
