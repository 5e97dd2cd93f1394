"""Gettext catalogues on disk, brought up to date with the English for translators."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polib
from babel.core import UnknownLocaleError
from babel.messages.plurals import get_plural

from tools.lesson.sources import SOURCE_LANGUAGE

WHOLE_CELL = "whole cell"  # the kind of a text cell of a lesson: its sentences may be merged and moved


@dataclass(frozen=True)
class Text:
    """One English text and where it stands.

    Attributes:
        english: the text; for a number of things, the one for one thing.
        place: the cell or the file that holds it.
        kind: what a translator should know, such as "comment in code".
        is_format: whether `{names}` in it are filled in at run time.
        plural: the text for several things; "" where no number is counted.
    """

    english: str
    place: str
    kind: str = ""
    is_format: bool = False
    plural: str = ""


def updated(
    old: polib.POFile, texts: Iterable[Text], language: str, elsewhere: Iterable[polib.POEntry] = ()
) -> polib.POFile:
    """Returns a catalogue with exactly `texts`, each with the translation that `old` has for it.

    Where the English changed, the old translation stays, fuzzy, with the English that it was made for.
    A text that came from another catalogue, whose entries are in `elsewhere`, brings its translation.
    `polib.POFile.merge` finds no changed texts, and forgets what English a fuzzy translation was made for.
    """
    same: dict[str, list[Text]] = {}
    for text in texts:
        same.setdefault(text.english, []).append(text)
    new = empty(language)
    new.extend(_untranslated(one, language) for one in same.values())
    if any(entry.msgid_plural for entry in new):
        new.metadata["Plural-Forms"] = _plural(language).plural_forms
    known = {entry.msgid: entry for entry in [*sorted(elsewhere, key=_worth), *old]}  # the last win
    gone = {entry.msgid: entry for entry in old if entry.msgid not in same and _is_begun(entry)}
    for entry in new:
        if entry.msgid in known:
            _translate(entry, known[entry.msgid])
        elif changed := _in_its_place(entry, gone) or difflib.get_close_matches(entry.msgid, gone, n=1):
            _translate(entry, gone.pop(changed[0]))
    return new


def empty(language: str) -> polib.POFile:
    """Returns a catalogue with no entry; its header holds no date and no name, so that it never changes."""
    catalogue = polib.POFile(wrapwidth=110)
    catalogue.metadata = {
        "Language": language,
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
    }
    return catalogue


def read(path: Path, language: str) -> polib.POFile:
    """Returns the catalogue in a file; an empty one where there is none."""
    if not path.exists():
        return empty(language)
    return polib.pofile(path.read_text("utf-8"), wrapwidth=110)


def write(catalogue: polib.POFile, path: Path) -> None:
    """Writes a catalogue."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(str(catalogue), "utf-8")


def is_written(catalogue: polib.POFile, path: Path) -> bool:
    """Returns whether the file holds the bytes that `write` would give it."""
    return path.exists() and path.read_bytes() == str(catalogue).encode()


def is_whole_cell(entry: polib.POEntry) -> bool:
    """Returns whether a text is a whole cell of a lesson."""
    return WHOLE_CELL in entry.comment


def _plural(language: str) -> Any:
    """Returns gettext's rule for the plurals of a language; English's where nothing is known about it."""
    try:
        return get_plural(language)
    except UnknownLocaleError:
        return get_plural(SOURCE_LANGUAGE)


def _untranslated(same: list[Text], language: str) -> polib.POEntry:
    """Returns the entry of a text, which may stand in several places."""
    kinds = dict.fromkeys(text.kind for text in same if text.kind)
    entry = polib.POEntry(msgid=same[0].english, comment=", ".join(kinds))
    entry.occurrences = [(place, "") for place in dict.fromkeys(text.place for text in same)]
    entry.flags = ["python-brace-format"] if any(text.is_format for text in same) else []
    entry.msgid_plural = next((text.plural for text in same if text.plural), "")
    if entry.msgid_plural:
        entry.msgstr_plural = dict.fromkeys(range(_plural(language).num_plurals), "")
    return entry


def _is_begun(entry: polib.POEntry) -> bool:
    """Returns whether a text has a translation, be it fuzzy."""
    return bool(entry.msgstr or any(entry.msgstr_plural.values()))


def _worth(entry: polib.POEntry) -> tuple[bool, bool]:
    """Returns how good a translation is for the same text elsewhere: what code says is said alike."""
    return entry.translated(), any(place.endswith(".py") for place, _line in entry.occurrences)


def _translate(entry: polib.POEntry, old: polib.POEntry) -> None:
    """Gives a text the translation of an old one, marked fuzzy where it was or where the English differs."""
    if not _is_begun(old) or bool(old.msgid_plural) != bool(entry.msgid_plural):
        return
    entry.msgstr, entry.msgstr_plural = old.msgstr, old.msgstr_plural
    is_changed = (old.msgid, old.msgid_plural) != (entry.msgid, entry.msgid_plural)
    if old.fuzzy or is_changed:
        entry.flags = [*entry.flags, "fuzzy"]
        entry.previous_msgid, entry.previous_msgid_plural = old.previous_msgid, old.previous_msgid_plural
        if not old.previous_msgid and is_changed:
            entry.previous_msgid, entry.previous_msgid_plural = old.msgid, old.msgid_plural or None


def _in_its_place(entry: polib.POEntry, old: dict[str, polib.POEntry]) -> list[str]:
    """Returns the English of the old cell that has the place of this one, where there is one."""
    cells = [other for other in old.values() if is_whole_cell(other)]
    return [cell.msgid for cell in cells if set(entry.occurrences).intersection(cell.occurrences)]
