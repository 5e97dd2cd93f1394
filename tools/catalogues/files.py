"""Gettext catalogues on disk, brought up to date with the English for translators."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import polib


@dataclass(frozen=True)
class Text:
    """One English text and where it stands.

    Attributes:
        english: the text.
        place: the cell or the file that holds it.
        kind: what a translator should know, such as "comment in code".
        is_format: whether `{names}` in it are filled in at run time.
    """

    english: str
    place: str
    kind: str = ""
    is_format: bool = False


def updated(old: polib.POFile, texts: Iterable[Text], language: str) -> polib.POFile:
    """Returns a catalogue with exactly `texts`, each with the translation that `old` has for it.

    Where the English changed, the old translation stays, marked fuzzy, with the English that it was made for.
    """
    new = empty(language)
    known = {entry.msgid: entry for entry in old}
    for english, same in _by_english(texts).items():
        entry = polib.POEntry(msgid=english, comment=", ".join(_unique(text.kind for text in same)))
        entry.occurrences = [(place, "") for place in _unique(text.place for text in same)]
        entry.flags = ["python-brace-format"] if any(text.is_format for text in same) else []
        if english in known:
            entry.msgstr, entry.previous_msgid = known[english].msgstr, known[english].previous_msgid
            entry.flags += ["fuzzy"] if known[english].fuzzy else []
        new.append(entry)
    _mark_changed(new, [entry for entry in old if entry.msgid not in {e.msgid for e in new} and entry.msgstr])
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
    """Writes a catalogue; equal catalogues give equal bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(str(catalogue) + "\n", "utf-8")


def _by_english(texts: Iterable[Text]) -> dict[str, list[Text]]:
    found: dict[str, list[Text]] = {}
    for text in texts:
        found.setdefault(text.english, []).append(text)
    return found


def _unique(words: Iterable[str]) -> list[str]:
    return [word for word in dict.fromkeys(words) if word]


def _mark_changed(new: polib.POFile, gone: list[polib.POEntry]) -> None:
    """Gives each new text the translation of the most similar text that is gone, marked fuzzy."""
    candidates = {entry.msgid: entry for entry in gone}
    for entry in [entry for entry in new if not (entry.msgstr or entry.msgid_plural)]:
        for english in difflib.get_close_matches(entry.msgid, candidates, n=1):
            similar = candidates.pop(english)
            entry.msgstr, entry.flags = similar.msgstr, [*entry.flags, "fuzzy"]
            entry.previous_msgid = similar.previous_msgid or english
