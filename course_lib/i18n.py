"""The reader's language: the gettext catalogues of the library and of the lessons."""

from __future__ import annotations

import gettext
import io
import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import polib

from course_lib import syllabus

SOURCE_LANGUAGE = "en"
_CATALOGUES = files("course_lib") / "locale"
_current = {"language": SOURCE_LANGUAGE}


def languages() -> tuple[str, ...]:
    """Returns the codes of the languages that the library speaks, the source language first."""
    translated = sorted(entry.name[:-3] for entry in _CATALOGUES.iterdir() if entry.name.endswith(".po"))
    return (SOURCE_LANGUAGE, *translated)


def language() -> str:
    """Returns the code of the reader's language."""
    return _current["language"]


def set_language(code: str) -> None:
    """Makes `code`, one of `languages()`, the language of every text from now on."""
    _current["language"] = code


def _(message: str, **values: object) -> str:
    """Returns `message` in the reader's language, its `{named}` places filled with `values`.

    >>> _("{count} devices", count=8)
    '8 devices'
    """
    return _catalogue(_current["language"]).gettext(message).format(**values)


def translated(text: str) -> str:
    """Returns a text of a lesson's source in the reader's language; "" is ""."""
    return _catalogue(language()).gettext(text) if text else ""


def later(message: str) -> Any:
    """Returns a property of a class: `message` in the language that the reader has when it is shown."""
    return property(lambda _self: translated(message))


def ngettext(one: str, many: str, count: int, **values: object) -> str:
    """Returns the text for `count` things in the reader's language, its `{named}` places filled.

    Args:
        one: the English for one thing, with `{count}` where the number stands.
        many: the English for any other number of things.
        count: how many there are.
        values: what fills the other places.

    >>> [ngettext("{count} device", "{count} devices", count) for count in (1, 8)]
    ['1 device', '8 devices']
    """
    return _catalogue(language()).ngettext(one, many, count).format(count=count, **values)


def join_sentences(sentences: Sequence[str]) -> str:
    """Returns the sentences one after the other; after a full-width stop there is no space.

    >>> join_sentences(["One.", "Two."]), join_sentences(["一。", "二。"])
    ('One. Two.', '一。二。')
    """
    joined = ""
    for sentence in sentences:
        joined += sentence if not joined or is_wide(joined[-1]) else f" {sentence}"
    return joined


def labelled(label: str, content: str) -> str:
    """Returns a content behind what it is called."""
    return _("{heading}: {content}", heading=label, content=content)


def is_wide(character: str) -> bool:
    """Returns whether a character takes two columns, as Japanese ones do where all others take one."""
    return unicodedata.east_asian_width(character) in "WF"


def num_columns(text: str) -> int:
    """Returns how many columns a line of text takes in a font of fixed width.

    >>> num_columns("Adam"), num_columns("Adamと2台")
    (4, 9)
    """
    return len(text) if text.isascii() else len(text) + sum(map(is_wide, text))


@cache
def _catalogue(code: str) -> gettext.NullTranslations:
    if code == SOURCE_LANGUAGE:
        return gettext.NullTranslations()
    catalogue = _read(_CATALOGUES / f"{code}.po")
    # What the library does not say, the lessons do.
    folders = [folder for place in syllabus.installed() for folder in (place.folder.parent, place.folder)]
    for path in dict.fromkeys(folder / f"{code}.po" for folder in folders):
        if path.exists():
            catalogue.add_fallback(_read(path))
    return catalogue


def _read(path: Traversable) -> gettext.GNUTranslations:
    entries = polib.pofile(path.read_text(encoding="utf-8"))
    return gettext.GNUTranslations(io.BytesIO(entries.to_binary()))
