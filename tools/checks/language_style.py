"""A language's rules of prose that a machine can hold a translation against, and its glossary.

Both are files of the language, `lessons/locale/*/style.yml` and `glossary.md`; neither is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import yaml

_OBJECT = "\ufffc"  # stands for a code span, a formula or a placeholder
_MARKUP = re.compile(r"`+.+?`+|\$[^$]+\$|\{\w*(?:[!:][^{}]*)?\}|https?://[!-(*-~]+", re.S)
_CALL = re.compile(r"\b[\w.]+\([^()]*\)(?:\.\w+)*")  # code in a message of the library: mesh.of(8).shape
_CLASS = re.compile(r"<([a-z ]+)>")  # of characters, in a pattern
_LINK_TARGET = re.compile(r"\]\([^)]*\)")

Rules = dict[re.Pattern[str], str]


@dataclass(frozen=True)
class Style:
    """The rules of a language's prose: what each finds, and what to say of it.

    Attributes:
        letters: finds what only text of this language has.
        words: rules for a text without marks of bold words.
        marks: rules for a text with them.
    """

    letters: re.Pattern[str] = re.compile(r"\w")
    words: Rules = field(default_factory=dict)
    marks: Rules = field(default_factory=dict)

    def problems(self, text: str) -> Iterator[str]:
        """Yields the rules that a text of this language breaks, with the words that do."""
        for rules, prose in ((self.words, _prose(text)), (self.marks, _without_code(text))):
            for pattern, said in rules.items():
                if found := pattern.search(prose):
                    yield f"「{found[0].replace(_OBJECT, '…')}」: {said}"

    def left_out(self, english: str, text: str) -> bool:
        """Returns whether a text of several English words was left without a letter of this language."""
        words = re.findall(r"[A-Za-z]{2,}", _prose(english))
        return len(words) > 3 and not self.letters.search(text)


def read_style(path: Path) -> Style:
    """Returns the rules that a file of a language states."""
    told = yaml.safe_load(path.read_text("utf-8"))
    classes = {**told["classes"], "object": _OBJECT}

    def rules(kind: str) -> Rules:
        return {
            re.compile(_CLASS.sub(lambda name: classes[name[1]], found)): said
            for found, said in told.get(kind, {}).items()
        }

    return Style(re.compile(told.get("letters", r"\w")), rules("words"), rules("marks"))


@dataclass(frozen=True)
class Term:
    """A term of a glossary: where `english` is used, one of `forms` must be."""

    english: str
    forms: tuple[str, ...]

    @cache  # noqa: B019 - a glossary stays for the whole run
    def pattern(self) -> re.Pattern[str]:
        """Returns what finds the term in English prose, plural and hyphens included."""
        words = re.escape(self.english).replace(r"\ ", r"[\s-]").replace(r"\-", r"[\s-]")
        return re.compile(rf"(?<![\w-]){words}(?:s|es)?(?![\w-])", re.I)


def read_glossary(path: Path) -> tuple[Term, ...]:
    """Returns the terms of a glossary's table, longest first; those noted "free" are not checked."""
    table = [line for line in path.read_text("utf-8").splitlines() if line.startswith("|")][2:]
    rows = [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in table]
    checked = [(english, forms) for english, forms, note in rows if not note.startswith("free")]
    terms = [Term(english, tuple(form.strip() for form in forms.split("/"))) for english, forms in checked]
    return tuple(sorted(terms, key=lambda term: -len(term.english)))


def missing_terms(english: str, text: str, glossary: tuple[Term, ...]) -> Iterator[str]:
    """Yields the terms that the English uses and a translation does not render as the glossary says."""
    prose = _CALL.sub(_OBJECT, _prose(english))
    for term in glossary:
        prose, uses = term.pattern().subn(" ; ", prose)  # "mesh dimension" is not also a "mesh"
        if uses and not any(form in text for form in term.forms):
            yield f"{term.english!r} is {' or '.join(term.forms)} in the glossary"


def _prose(text: str) -> str:
    return _without_code(text).replace("**", "")


def _without_code(text: str) -> str:
    return _LINK_TARGET.sub("]", _MARKUP.sub(_OBJECT, text))
