"""A language that nobody speaks: the English with other letters, so that a text left untranslated shows.

Its code is one of those that ISO 639 keeps free for private use. No code of the course knows it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import polib

from tools.catalogues import files
from tools.catalogues.__main__ import extract
from tools.lesson.sources import Course

ROOT = Path(__file__).resolve().parents[1]
LANGUAGE = "qaa"

_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_OTHER = "áƀćďéƒǵĥíĵķĺɱńóṕɋŕśťúṽŵẋýźÁƁĆĎÉƑǴĤÍĴĶĹḾŃÓṔɊŔŚŤÚṼŴẊÝŹ"
_LETTERS = str.maketrans(_PLAIN, _OTHER)
# What a translation keeps: templates, code, formulas, addresses, tags, {names}, entities.
_KEPT = re.compile(
    r"(\{\{.*?\}\}|\{%.*?%\}|(?P<ticks>`+).+?(?P=ticks)|\$\$?[^$]+\$\$?|\]\([^)]*\)|https?://[!-(*-~]+"
    r"|<code>.*?</code>|<[^<>]+>|\{[^{}]*\}|&\w+;)",
    re.S,
)
_SPOKEN_ATTRIBUTE = re.compile(r'(?<= )((?:alt|title|aria-label)=")([^"]*)(?=")')


def translated(english: str) -> str:
    """Returns a text with another letter for each of its letters, and what no translator may touch as it was.

    >>> translated("Use `pack` on $n$ devices, {name!r}.")
    'Úśé `pack` óń $n$ ďéṽíćéś, {name!r}.'
    """
    return "".join(
        _with_spoken_attributes(part) if kept else part.translate(_LETTERS) for part, kept in _parts(english)
    )


def left_in_english(text: str) -> str:
    """Returns the plain letters of a text that should have been translated; "" where there are none."""
    return "".join(letter for part, kept in _parts(text) if not kept for letter in part if letter in _PLAIN)


def copied_course(folder: Path) -> Course:
    """Returns a copy of this course: what a translator checks out, without what is built."""
    for name in ("lessons", "course_lib", "jupyter_book"):
        built = shutil.ignore_patterns("*.ipynb", "__pycache__", ".ipynb_checkpoints")
        shutil.copytree(ROOT / name, folder / name, ignore=built)
    shutil.copytree(ROOT / "notebooks" / "plain", folder / "notebooks" / "plain")
    shutil.copy(ROOT / "pyproject.toml", folder)
    return Course(folder)


def add_language(course: Course) -> tuple[Path, ...]:
    """Adds the language to a course as a translator would, and returns the catalogues that this adds."""
    (course.root / "lessons" / "locale" / LANGUAGE).mkdir()
    list(extract(course))
    return translate(course)


def translate(course: Course) -> tuple[Path, ...]:
    """Translates every text of every catalogue of the language, and returns the catalogues."""
    paths = (*course.root.rglob(f"{LANGUAGE}.po"), *course.root.rglob(f"locale/{LANGUAGE}/*.po"))
    for path in paths:
        catalogue = files.read(path, LANGUAGE)
        for entry in catalogue:
            _translate(entry)
        files.write(catalogue, path)
    return paths


def _translate(entry: polib.POEntry) -> None:
    if entry.msgid_plural:
        forms = (entry.msgid, entry.msgid_plural)
        entry.msgstr_plural = {number: translated(form) for number, form in enumerate(forms)}
    else:
        entry.msgstr = translated(entry.msgid)


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yields the parts of a text in order, each with whether a translation keeps it."""
    end = 0
    for match in _KEPT.finditer(text):
        yield text[end : match.start()], False
        yield match[0], True
        end = match.end()
    yield text[end:], False


def _with_spoken_attributes(part: str) -> str:
    if not part.startswith("<"):
        return part
    return _SPOKEN_ATTRIBUTE.sub(lambda match: match[1] + match[2].translate(_LETTERS), part)
