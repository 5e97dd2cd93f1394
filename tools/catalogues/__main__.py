"""Keeps the translation catalogues in step with the English, and holds the translations against their rules.

python -m tools.catalogues extract    brings every catalogue up to date
python -m tools.catalogues check      lists what is missing, fuzzy, stale or against a rule
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.catalogues import files
from tools.catalogues.faults import faults
from tools.catalogues.files import Text
from tools.catalogues.texts import catalogues
from tools.lesson.sources import Course, LessonError


def extract(course: Course) -> Iterator[str]:
    """Brings every catalogue up to date and yields a line about each.

    Raises:
        LessonError: a lesson cannot be read.
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
        LessonError: a lesson cannot be read.
    """
    texts_by_path = catalogues(course)
    for language in course.translations:
        folder = course.shared_catalogue(language).parent
        for path, texts in _in_language(course, texts_by_path, language).items():
            catalogue = files.updated(files.read(path, language), texts, language)
            if not files.is_written(catalogue, path):
                yield f"{_short(course, path)}: stale, it is not what `extract` writes"
            yield from (f"{_short(course, path)}: {fault}" for fault in faults(folder, catalogue))


def _in_language(course: Course, texts: dict[str, list[Text]], language: str) -> dict[Path, list[Text]]:
    return {course.root / path.format(language=language): of_one for path, of_one in texts.items()}


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
