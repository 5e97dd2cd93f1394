"""Rules for Japanese prose that a machine can hold it against, and the glossary.

The conventions are stated in `notebooks/locale/ja/glossary.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_JA = r"[\u3040-\u30ff\u3400-\u9fff々〆ー]"
_OBJECT = "\ufffc"  # stands for a code span, a formula or a placeholder: Latin text, as far as spaces go
_LATIN = rf"[A-Za-z0-9{_OBJECT}%°)\]]"
_LATIN_START = rf"[A-Za-z0-9{_OBJECT}(\[]"
_MARKUP = re.compile(r"`+.+?`+|\$[^$]+\$|\{\w*(?:[!:][^{}]*)?\}|https?://[!-(*-~]+", re.S)
_LINK_TARGET = re.compile(r"\]\([^)]*\)")

_RULES = {
    "half-width punctuation after Japanese: use 、。，！？：；": rf"{_JA}\s*[,.!?:;]",
    "half-width kana": r"[\uff61-\uff9f]",
    "full-width Latin letters or digits": r"[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]",
    "full-width space": "\u3000",
    "space between Latin and Japanese": rf"{_LATIN} +{_JA}|{_JA} +{_LATIN_START}",
    "space inside Japanese": rf"{_JA} +{_JA}",
    "space beside full-width punctuation": r"[、。！？：；「」（）] +\S|\S +[、。！？：；「」（）]",
    "half-width brackets around Japanese: use （）": rf"\([^()]*{_JA}[^()]*\)",
    "comma of Latin text in Japanese: use 、": rf"{_JA}，",
    "plain style: use です・ます": (
        r"(?:である|のだ|だった|だろう|(?<![たく])する|なる|ある|いる|れる|せる|える|ない|(?<![まで])した|った|いた|だ)。"
    ),
}


@dataclass(frozen=True)
class Term:
    """A term of the glossary: where `english` is used, one of `japanese` must be."""

    english: str
    japanese: tuple[str, ...]

    def pattern(self) -> re.Pattern[str]:
        """Returns what finds the term in English prose, plural and hyphens included."""
        words = re.escape(self.english).replace(r"\ ", r"[\s-]").replace(r"\-", r"[\s-]")
        return re.compile(rf"(?<![\w-]){words}(?:s|es)?(?![\w-])", re.I)


def style_problems(japanese: str) -> Iterator[str]:
    """Yields the rules that a Japanese text breaks.

    >>> list(style_problems("メッシュ は格子です."))
    ['half-width punctuation after Japanese: use 、。，！？：；', 'space inside Japanese']
    """
    prose = _prose(japanese)
    for rule, pattern in _RULES.items():
        if re.search(pattern, prose):
            yield rule


def untranslated(english: str, japanese: str) -> bool:
    """Returns whether a text of several English words was left without any Japanese."""
    words = re.findall(r"[A-Za-z]{2,}", _prose(english))
    return len(words) > 3 and not re.search(_JA, japanese)


def read_glossary(path: Path) -> tuple[Term, ...]:
    """Returns the terms of a glossary's table, longest first; those noted "free" are not checked."""
    table = [line for line in path.read_text("utf-8").splitlines() if line.startswith("|")][2:]
    rows = [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in table]
    checked = [(english, forms) for english, forms, note in rows if not note.startswith("free")]
    terms = [Term(english, tuple(form.strip() for form in forms.split("/"))) for english, forms in checked]
    return tuple(sorted(terms, key=lambda term: -len(term.english)))


def missing_terms(english: str, japanese: str, glossary: tuple[Term, ...]) -> Iterator[str]:
    """Yields the terms that the English uses and the Japanese does not render as the glossary says."""
    prose = _prose(english)
    for term in glossary:
        prose, uses = term.pattern().subn(" ; ", prose)  # "mesh dimension" is not also a "mesh"
        if uses and not any(form in japanese for form in term.japanese):
            yield f"{term.english!r} is {' or '.join(term.japanese)} in the glossary"


def _prose(text: str) -> str:
    return _LINK_TARGET.sub("]", _MARKUP.sub(_OBJECT, text)).replace("**", "")
