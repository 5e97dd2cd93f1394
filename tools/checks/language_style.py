"""A language's rules of prose that a machine can hold a translation against, and its glossary.

Both are files of the language, `lessons/locale/*/style.yml` and `glossary.md`; neither is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tools.lesson.markdown_blocks import parser

_OBJECT = "\ufffc"  # stands for a code span, a formula or a placeholder
_MARKUP = re.compile(r"`+.+?`+|\$[^$]+\$|\{\w*(?:[!:][^{}]*)?\}|https?://[!-(*-~]+", re.S)
_CALL = re.compile(
    r"\b[\w.]+\([^()]*\)(?:\.\w+)*"
)  # code in a message of the library: layout.of(shape).shards
_LINK_TARGET = re.compile(r"\]\([^)]*\)")


class Style:
    """The rules of a language's prose.

    Args:
        told: `letters`, what only text of this language has; `classes` of characters for what follows;
            `rules`, and what each finds; `better_words` and `better_forms`, what is written in place of what;
            `once`, words that stand at most once in a text; `italics`, what to write in place of them.
            Each may be absent.
    """

    def __init__(self, told: dict[str, Any]) -> None:
        classes = {f"<{name}>": found for name, found in told.get("classes", {}).items()}
        self._classes = {**classes, "<object>": _OBJECT}
        self._letters = re.compile(told.get("letters", r"\w"))
        self._once, self._italics = told.get("once", {}), told.get("italics", "")
        self.rules = self._patterns({found: rule for rule, found in told.get("rules", {}).items()})
        self.better_words = self._patterns(told.get("better_words", {}))
        self.better_forms = self._patterns(told.get("better_forms", {}))

    def problems(self, text: str) -> Iterator[str]:
        """Yields the rules that a text of this language breaks."""
        prose = _prose(text)
        yield from (rule for pattern, rule in self.rules.items() if pattern.search(prose))
        yield from _worse_words(prose, self.better_words)
        yield from _worse_words(_without_code(text), self.better_forms)
        for words in filter(self._letters.search, _in_italics(text) if self._italics else ()):
            yield f"*{words}*: write {self._italics}"
        for words, instead in self._once.items():
            if (count := prose.count(words)) > 1:
                yield f"{words} {count} times: {instead}"

    def left_out(self, english: str, text: str) -> bool:
        """Returns whether a text of several English words was left without a letter of this language."""
        words = re.findall(r"[A-Za-z]{2,}", _prose(english))
        return len(words) > 3 and not self._letters.search(text)

    def _patterns(self, rules: dict[str, str]) -> dict[re.Pattern[str], str]:
        """Returns what each rule finds, and what to say of it."""
        whole = re.compile("|".join(map(re.escape, self._classes)))
        return {
            re.compile(whole.sub(lambda name: self._classes[name[0]], rule)): said
            for rule, said in rules.items()
        }


def read_style(path: Path) -> Style:
    """Returns the rules that a file of a language states."""
    return Style(yaml.safe_load(path.read_text("utf-8")))


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


def _worse_words(text: str, better: dict[re.Pattern[str], str]) -> Iterator[str]:
    for pattern, instead in better.items():
        if found := pattern.search(text):
            yield f"「{found[0].replace(_OBJECT, '…')}」: write {instead}"


def _in_italics(text: str) -> Iterator[str]:
    tokens = parser().parseInline(text)[0].children or []
    for start, token in enumerate(tokens):
        if token.type == "em_open":
            types = [later.type for later in tokens[start:]]
            yield "".join(inner.content for inner in tokens[start : start + types.index("em_close")])


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
