"""What a translation must keep of its English: formulas, code, links, tags, placeholders, structure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

from tools.lesson.markdown_blocks import parser
from tools.lesson.references import topics

_CODE = re.compile(r"(`+)(.+?)\1", re.S)
_ADDRESS = re.compile(r"(?<!\()https?://[!-(*-~]*[\w/]", re.ASCII)
_TRANSLATED_ATTRIBUTE = re.compile(r' (alt|title|aria-label)="[^"]*"')
_REFERENCES = {"lesson", "Lesson", "number", "notebook"}  # to lessons: {lesson:a_run}


def _code_spans(text: str) -> list[str]:
    """Returns the code in a text; what is fenced is one span."""
    return [match[2] for match in _CODE.finditer(text)]


def _formulas(text: str) -> list[str]:
    return re.findall(r"\$\$?[^$]+\$\$?", _CODE.sub("", text))


def _links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)\s]*)", text) + _ADDRESS.findall(text)


def _templates(text: str) -> list[str]:
    return re.findall(r"\{\{.*?\}\}|\{%.*?%\}", text)


def _placeholders(text: str) -> list[str]:
    # A translation may quote a value in its own way: {name!r} and 「{name}」 both show `name`.
    names = [re.split(r"[!:]", found)[0] for found in re.findall(r"\{(\w*(?:[!:][^{}]*)?)\}", text)]
    return [name for name in names if name not in _REFERENCES]


def _tags(text: str) -> list[str]:
    found = re.findall(r"</?[a-zA-Z][^>]*>", _CODE.sub("", text))
    return [_TRANSLATED_ATTRIBUTE.sub(r" \1", tag) for tag in found]


def _table_bars(text: str) -> list[str]:
    """Returns the bars of each row of a table."""
    rows = [line for line in _CODE.sub("", text).split("\n") if line.lstrip().startswith("|")]
    return ["".join(re.findall(r"(?<!\\)\|", row)) for row in rows]


def _marks(text: str) -> list[str]:
    """Returns the tags of headings, and of what is shown in bold: `**。**` glued to a letter is not."""
    tokens = parser().parse(text)
    inner = [child for token in tokens for child in token.children or ()]
    return [token.tag for token in [*tokens, *inner] if token.type in ("heading_open", "strong_open")]


KEPT: dict[str, Callable[[str], list[str]]] = {
    "formulas": _formulas,
    "links": _links,
    "code spans": _code_spans,
    "placeholders": _placeholders,
    "templates": _templates,
    "HTML tags": _tags,
    "table rows": _table_bars,
    "headings or bold words": _marks,
}


def differences(english: str, translation: str) -> Iterator[str]:
    """Yields what `translation` does not keep of `english`.

    >>> list(differences("Use `pack` on $n$ devices.", "$n$ 台のデバイスで使います。"))
    ["code spans differ: ['pack'] became []"]
    """
    if missing := topics(english) - topics(translation):
        yield f"lessons are missing: {', '.join(sorted(missing))}"
    for what, find in KEPT.items():
        wanted, found = find(english), find(translation)
        if Counter(wanted) != Counter(found):
            yield f"{what} differ: {wanted} became {found}"
