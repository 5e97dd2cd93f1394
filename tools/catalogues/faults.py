"""What is wrong with a translation: missing, fuzzy, unlike its English, or no good text of its language."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import polib

from tools.catalogues import files
from tools.checks import language_style, translation_rules
from tools.checks.language_style import Style, Term
from tools.lesson import markdown_blocks
from tools.lesson.sources import Course, LessonError
from tools.lesson.texts import Translate, translations

_LISTS = {"opening", "takeaways"}  # cells with a list whose items are translated one by one


@dataclass(frozen=True)
class _Language:
    """What the translations of a language are held against.

    Attributes:
        words: gives those of a reference to a lesson.
        glossary: the terms that are fixed.
        style: the rules of prose; None where nobody wrote any.
    """

    words: Translate
    glossary: tuple[Term, ...]
    style: Style | None

    @classmethod
    def of(cls, course: Course, language: str) -> _Language:
        folder = course.root / "lessons" / "locale" / language
        glossary, style = folder / "glossary.md", folder / "style.yml"
        return cls(
            translations(course.shared_catalogue(language)),
            language_style.read_glossary(glossary) if glossary.exists() else (),
            language_style.read_style(style) if style.exists() else None,
        )


def faults(course: Course, language: str, catalogue: polib.POFile) -> Iterator[str]:
    """Yields a line about each fault of the translations in a catalogue."""
    rules = _Language.of(course, language)
    for entry in catalogue:
        if entry.fuzzy:
            yield f"fuzzy, the English changed: {start(entry.msgid)}"
        elif not entry.translated():
            yield f"missing: {start(entry.msgid)}"
        else:
            for fault, where in _of_one(course, entry, rules):
                yield f"{fault}: {start(entry.msgid_plural or entry.msgid)} -> {start(where)}"


def _of_one(course: Course, entry: polib.POEntry, rules: _Language) -> Iterator[tuple[str, str]]:
    """Yields what is wrong with a translation, each with the words that are."""
    try:
        read = _with_numbers(course, entry, rules.words)
    except LessonError as error:
        yield str(error), entry.msgstr
        return
    yield from chain(_left_out(entry), _unlike(read, rules), _no_good_text(read, rules))


def start(text: str) -> str:
    """Returns how a text begins."""
    return repr(text if len(text) < 70 else text[:67] + "...")


def _forms(entry: polib.POEntry) -> list[str]:
    return [*entry.msgstr_plural.values()] or [entry.msgstr]


def _with_numbers(course: Course, entry: polib.POEntry, words: Translate) -> polib.POEntry:
    """Returns a text and its translation as they are read, {lesson:a_run} as "lesson 4"."""
    read = copy.copy(entry)
    read.msgid, read.msgid_plural = (course.resolved(text, str) for text in (entry.msgid, entry.msgid_plural))
    read.msgstr = course.resolved(entry.msgstr, words)
    read.msgstr_plural = {form: course.resolved(text, words) for form, text in entry.msgstr_plural.items()}
    return read


def _left_out(entry: polib.POEntry) -> Iterator[tuple[str, str]]:
    """Yields the lessons that a text refers to and its translation does not."""
    for translation in _forms(entry):
        for fault in translation_rules.lessons_left_out(entry.msgid, translation):
            yield fault, translation


def _unlike(entry: polib.POEntry, rules: _Language) -> Iterator[tuple[str, str]]:
    """Yields what a translation does not keep of its English, and terms that are not the glossary's."""
    english = entry.msgid_plural or entry.msgid
    has_list = any(place in _LISTS for place, _line in entry.occurrences)
    kept = translation_rules.KEPT_WITH_LISTS if has_list else translation_rules.KEPT
    for translation in _forms(entry):
        wanted, found = ("\n".join(_texts(entry, words)) for words in (english, translation))
        for fault in chain(
            translation_rules.differences(english, translation, kept),
            language_style.missing_terms(wanted, found, rules.glossary),
        ):
            yield fault, translation


def _no_good_text(entry: polib.POEntry, rules: _Language) -> Iterator[tuple[str, str]]:
    """Yields what breaks a rule of the language, and what was left in English: one text, or all."""
    if rules.style is None:
        return
    for translation in _forms(entry):
        texts = _texts(entry, translation)
        for text in texts:
            yield from ((problem, text) for problem in rules.style.problems(text))
        originals = {text: text for text in texts} | {"\n".join(texts): entry.msgid_plural or entry.msgid}
        for text, original in originals.items():
            if rules.style.left_out(original, text):
                yield "left in English", text


def _texts(entry: polib.POEntry, words: str) -> list[str]:
    """Returns the paragraphs, list items and so on of a cell, without fenced code; of another entry all."""
    return [block.text for block in markdown_blocks.blocks(words)] if files.is_whole_cell(entry) else [words]
