"""Keeps the translation catalogues in step with the English, and holds the translations against their rules.

python -m tools.catalogues extract    brings every catalogue up to date
python -m tools.catalogues check      lists what is missing, fuzzy, stale or against a rule
"""

from __future__ import annotations

import argparse
import copy
import re
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import polib

from tools.catalogues import files
from tools.catalogues.files import Text
from tools.catalogues.texts import catalogues
from tools.checks import japanese_style, translation_rules
from tools.lesson import markdown_blocks
from tools.lesson.sources import Course, LessonError
from tools.lesson.texts import Translate, translations

_IS_LOOKED_UP = re.compile(r"^(predict|check)-|\.py$")  # whose texts are looked up when a cell runs
_IS_SPOKEN = re.compile(r"course_lib/locale/|lessons/(?!locale/)")  # of the library, a part or a lesson
_LISTS = {"opening", "takeaways"}  # cells with a list whose items are translated one by one


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
            faults = [*_stale(old, new, path), *_faults(course, language, new)]
            yield from (f"{_short(course, path)}: {fault}" for fault in faults)
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
                    yield f"{_short(course, path)}: {_start(entry.msgid)} is {before!r} in {place}"


def _in_language(course: Course, texts: dict[str, list[Text]], language: str) -> dict[Path, list[Text]]:
    return {course.root / path.format(language=language): of_one for path, of_one in texts.items()}


def _stale(old: polib.POFile, new: polib.POFile, path: Path) -> Iterator[str]:
    known, wanted = {entry.msgid for entry in old}, {entry.msgid for entry in new}
    for english in sorted(wanted - known):
        yield f"stale, this text is not in it (run extract): {_start(english)}"
    for english in sorted(known - wanted):
        yield f"stale, this text is gone (run extract): {_start(english)}"
    if known == wanted and not files.is_written(new, path):
        yield "stale, order, places, flags or line breaks changed (run extract)"


def _faults(course: Course, language: str, catalogue: polib.POFile) -> Iterator[str]:
    path = course.root / "lessons" / "locale" / language / "glossary.md"
    glossary = japanese_style.read_glossary(path) if path.exists() else ()
    words = translations(course.shared_catalogue(language))
    for entry in catalogue:
        if entry.fuzzy:
            yield f"fuzzy, the English changed: {_start(entry.msgid)}"
        elif not entry.translated():
            yield f"missing: {_start(entry.msgid)}"
        else:
            faults = _translation_faults(language, _with_numbers(course, entry, words), glossary)
            for fault, where in chain(_left_out(entry), faults):
                yield f"{fault}: {_start(entry.msgid_plural or entry.msgid)} -> {_start(where)}"


def _forms(entry: polib.POEntry) -> list[str]:
    return [*entry.msgstr_plural.values()] or [entry.msgstr]


def _left_out(entry: polib.POEntry) -> Iterator[tuple[str, str]]:
    """Yields the lessons that a text refers to and its translation does not."""
    for translation in _forms(entry):
        for fault in translation_rules.lessons_left_out(entry.msgid, translation):
            yield fault, translation


def _with_numbers(course: Course, entry: polib.POEntry, words: Translate) -> polib.POEntry:
    """Returns a text and its translation as they are read, {lesson:a_run} as "lesson 4"."""
    read = copy.copy(entry)
    read.msgid, read.msgid_plural = (course.resolved(text, str) for text in (entry.msgid, entry.msgid_plural))
    read.msgstr = course.resolved(entry.msgstr, words)
    read.msgstr_plural = {form: course.resolved(text, words) for form, text in entry.msgstr_plural.items()}
    return read


def _translation_faults(
    language: str, entry: polib.POEntry, glossary: tuple[japanese_style.Term, ...]
) -> Iterator[tuple[str, str]]:
    """Yields the rules that a translation breaks, each with the words that break it."""
    english = entry.msgid_plural or entry.msgid
    has_list = any(place in _LISTS for place, _line in entry.occurrences)
    kept = translation_rules.KEPT_WITH_LISTS if has_list else translation_rules.KEPT
    for translation in _forms(entry):
        wanted, found = (_texts(entry, words) for words in (english, translation))
        for fault in chain(
            translation_rules.differences(english, translation, kept),
            japanese_style.missing_terms("\n".join(wanted), "\n".join(found), glossary),
        ):
            yield fault, translation
        if language == "ja":
            yield from _japanese_faults(english, found)


def _japanese_faults(english: str, japanese: list[str]) -> Iterator[tuple[str, str]]:
    """Yields what is no good Japanese in each text, and what was left in English: one of them, or all."""
    for text in japanese:
        yield from ((problem, text) for problem in japanese_style.style_problems(text))
    originals = {text: text for text in japanese} | {"\n".join(japanese): english}
    for text, original in originals.items():
        if japanese_style.untranslated(original, text):
            yield "left in English", text


def _texts(entry: polib.POEntry, words: str) -> list[str]:
    """Returns the paragraphs, list items and so on of a cell, without fenced code; of another entry all."""
    return [block.text for block in markdown_blocks.blocks(words)] if files.is_whole_cell(entry) else [words]


def _start(text: str) -> str:
    return repr(text if len(text) < 70 else text[:67] + "...")


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
        faults = list(check(course))
    except LessonError as error:
        faults = [str(error)]
    print("\n".join(faults) or "The catalogues are complete.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
