"""Gettext catalogues on disk, brought up to date with the English for translators."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

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
    """
    new = empty(language)
    new.extend(_untranslated(english, same, language) for english, same in _by_english(texts).items())
    if any(entry.msgid_plural for entry in new):
        new.metadata["Plural-Forms"] = _plural_forms(language)
    known = {entry.msgid: entry for entry in old}
    moved = {entry.msgid: entry for entry in sorted(elsewhere, key=_worth)}  # the best win
    for entry in new:
        if entry.msgid in known or entry.msgid in moved:
            _translate(entry, known.pop(entry.msgid) if entry.msgid in known else moved[entry.msgid])
    _mark_changed(new, known)
    return new


def _worth(entry: polib.POEntry) -> tuple[bool, bool]:
    """Returns how good a translation is for the same text elsewhere: what code says is said alike."""
    return entry.translated(), any(place.endswith(".py") for place, _line in entry.occurrences)


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


def _plural_forms(language: str) -> str:
    """Returns gettext's rule for the plurals of a language; English's where nothing is known about it."""
    try:
        return get_plural(language).plural_forms
    except UnknownLocaleError:
        return get_plural(SOURCE_LANGUAGE).plural_forms


def _num_forms(language: str) -> int:
    return int(re.findall(r"nplurals=(\d+)", _plural_forms(language))[0])


def _by_english(texts: Iterable[Text]) -> dict[str, list[Text]]:
    found: dict[str, list[Text]] = {}
    for text in texts:
        found.setdefault(text.english, []).append(text)
    return found


def _unique(words: Iterable[str]) -> list[str]:
    return [word for word in dict.fromkeys(words) if word]


def _untranslated(english: str, same: list[Text], language: str) -> polib.POEntry:
    entry = polib.POEntry(msgid=english, comment=", ".join(_unique(text.kind for text in same)))
    entry.occurrences = [(place, "") for place in _unique(text.place for text in same)]
    entry.flags = ["python-brace-format"] if any(text.is_format for text in same) else []
    entry.msgid_plural = next((text.plural for text in same if text.plural), "")
    if entry.msgid_plural:
        entry.msgstr_plural = dict.fromkeys(range(_num_forms(language)), "")
    return entry


def _translate(entry: polib.POEntry, old: polib.POEntry) -> None:
    """Gives a text the translation of an old one, marked fuzzy where it was or where the English differs."""
    forms = _forms(old)
    if not any(forms.values()):
        return
    if entry.msgid_plural:
        entry.msgstr_plural |= {number: forms[number] for number in entry.msgstr_plural if number in forms}
    else:
        entry.msgstr = forms[0]
    is_changed = (old.msgid, old.msgid_plural) != (entry.msgid, entry.msgid_plural)
    if old.fuzzy or is_changed:
        entry.flags = [*entry.flags, "fuzzy"]
        made_for = old.previous_msgid, old.previous_msgid_plural
        if is_changed and not old.previous_msgid:
            made_for = old.msgid, old.msgid_plural
        entry.previous_msgid, entry.previous_msgid_plural = made_for[0], made_for[1] or None


def _forms(entry: polib.POEntry) -> dict[int, str]:
    """Returns the translations of a text by the number of their form; without a plural, form 0 alone."""
    return entry.msgstr_plural or {0: entry.msgstr}


def _mark_changed(new: polib.POFile, gone: dict[str, polib.POEntry]) -> None:
    """Gives each new text the translation of a text that is gone, marked fuzzy.

    That of a cell is the one of the cell that had its place. Else it is the one of the most similar text.
    """
    candidates = {english: entry for english, entry in gone.items() if any(_forms(entry).values())}
    for find in (_in_its_place, _most_similar):
        for entry in [entry for entry in new if not any(_forms(entry).values())]:
            for english in find(entry, candidates):
                _translate(entry, candidates.pop(english))


def _in_its_place(entry: polib.POEntry, old: dict[str, polib.POEntry]) -> list[str]:
    """Returns the English of the old cell that has the place of this one, where there is one."""
    cells = [other for other in old.values() if is_whole_cell(other)]
    return [cell.msgid for cell in cells if set(entry.occurrences).intersection(cell.occurrences)][:1]


def _most_similar(entry: polib.POEntry, old: dict[str, polib.POEntry]) -> list[str]:
    """Returns the English of the most similar old text, where one is similar."""
    return difflib.get_close_matches(entry.msgid, old, n=1)
