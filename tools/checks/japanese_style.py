"""Rules for Japanese prose that a machine can hold it against, and the glossary.

The conventions are stated in `lessons/locale/ja/glossary.md`, those too that only a reader can hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from tools.lesson.markdown_blocks import parser

_JA = r"[\u3040-\u30ff\u3400-\u9fff々〆ー]"
_OBJECT = "\ufffc"  # stands for a code span, a formula or a placeholder: Latin text, as far as spaces go
_LATIN = rf"[A-Za-z0-9{_OBJECT}%°)\]]"
_LATIN_START = rf"[A-Za-z0-9{_OBJECT}(\[]"
_MARKUP = re.compile(r"`+.+?`+|\$[^$]+\$|\{\w*(?:[!:][^{}]*)?\}|https?://[!-(*-~]+", re.S)
_CALL = re.compile(
    r"\b[\w.]+\([^()]*\)(?:\.\w+)*"
)  # code in a message of the library: layout.of(shape).shards
_LINK_TARGET = re.compile(r"\]\([^)]*\)")

_CLASSES = {"<japanese>": _JA, "<latin>": _LATIN, "<latin start>": _LATIN_START, "<object>": _OBJECT}
_STYLE = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text("utf-8"))


def _patterns(rules: dict[str, str]) -> dict[re.Pattern[str], str]:
    """Returns what each rule finds, and what to say of it."""
    whole = re.compile("|".join(map(re.escape, _CLASSES)))
    return {re.compile(whole.sub(lambda name: _CLASSES[name[0]], rule)): said for rule, said in rules.items()}


_RULES = _patterns({pattern: rule for rule, pattern in _STYLE["rules"].items()})
_BETTER_WORDS, _BETTER_FORMS = _patterns(_STYLE["better_words"]), _patterns(_STYLE["better_forms"])
_QUESTION = "でしょうか"


@dataclass(frozen=True)
class Term:
    """A term of the glossary: where `english` is used, one of `japanese` must be."""

    english: str
    japanese: tuple[str, ...]

    @cache  # noqa: B019 - a glossary stays for the whole run
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
    for pattern, rule in _RULES.items():
        if pattern.search(prose):
            yield rule
    yield from _worse_words(prose, _BETTER_WORDS)
    yield from _worse_words(_without_code(japanese), _BETTER_FORMS)
    for words in filter(re.compile(_JA).search, _italics(japanese)):
        yield f"*{words}*: write 「」 or other words, not italics"
    if (count := prose.count(_QUESTION)) > 1:
        yield f"{_QUESTION} {count} times: ask once, as in …、…、のどれ{_QUESTION}"


def _worse_words(text: str, better: dict[re.Pattern[str], str]) -> Iterator[str]:
    for pattern, instead in better.items():
        if found := pattern.search(text):
            yield f"「{found[0].replace(_OBJECT, '…')}」: write {instead}"


def _italics(text: str) -> Iterator[str]:
    tokens = parser().parseInline(text)[0].children or []
    for start, token in enumerate(tokens):
        if token.type == "em_open":
            types = [later.type for later in tokens[start:]]
            yield "".join(inner.content for inner in tokens[start : start + types.index("em_close")])


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
    prose = _CALL.sub(_OBJECT, _prose(english))
    for term in glossary:
        prose, uses = term.pattern().subn(" ; ", prose)  # "mesh dimension" is not also a "mesh"
        if uses and not any(form in japanese for form in term.japanese):
            yield f"{term.english!r} is {' or '.join(term.japanese)} in the glossary"


def _prose(text: str) -> str:
    return _without_code(text).replace("**", "")


def _without_code(text: str) -> str:
    return _LINK_TARGET.sub("]", _MARKUP.sub(_OBJECT, text))
