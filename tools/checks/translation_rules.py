"""What a translation must keep of its English: formulas, code, links, tags, placeholders, structure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

from tools.lesson.markdown_blocks import parser
from tools.lesson.references import topics

Find = Callable[[str], list[str]]

_CODE = re.compile(r"(`+)(.+?)\1", re.S)
_ADDRESS = re.compile(r"(?<!\()https?://[!-(*-~]*[\w/]", re.ASCII)
_TRANSLATED_ATTRIBUTE = re.compile(r' (alt|title|aria-label)="[^"]*"')
_FORMULA = re.compile(r"\$\$?[^$]+\$\$?")


def _code_spans(text: str) -> list[str]:
    """Returns the code in a text; what is fenced is one span."""
    return [match[2] for match in _CODE.finditer(text)]


def _formulas(text: str) -> list[str]:
    return _FORMULA.findall(_CODE.sub("", text))


def _links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)\s]*)", text) + _ADDRESS.findall(text)


def _templates(text: str) -> list[str]:
    return re.findall(r"\{\{.*?\}\}|\{%.*?%\}", text)


def _placeholders(text: str) -> list[str]:
    # A translation may quote a value in its own way: {name!r} and 「{name}」 both show `name`.
    return [re.split(r"[!:]", found)[0] for found in re.findall(r"\{(\w*(?:[!:][^{}]*)?)\}", text)]


def lessons_left_out(english: str, translation: str) -> Iterator[str]:
    """Yields what lessons `english` refers to and `translation` does not, in whatever form.

    >>> list(lessons_left_out("{Lesson:a_run} saves.", "{lesson:a_run}で保存します。"))
    []
    """
    if missing := topics(english) - topics(translation):
        yield f"lessons are missing: {', '.join(sorted(missing))}"


def _tags(text: str) -> list[str]:
    found = re.findall(r"</?[a-zA-Z][^>]*>", _CODE.sub("", text))
    return [_TRANSLATED_ATTRIBUTE.sub(r" \1", tag) for tag in found]


def _table_bars(text: str) -> list[str]:
    """Returns the bars of each row of a table."""
    rows = [line for line in _CODE.sub("", text).split("\n") if line.lstrip().startswith("|")]
    return ["".join(re.findall(r"(?<!\\)\|", row)) for row in rows]


def _bold_words(text: str) -> list[str]:
    """Returns a mark for each stretch that is shown in bold: `**。**` glued to a letter is not."""
    children = [child for token in parser().parse(text) for child in token.children or ()]
    return ["bold" for token in children if token.type == "strong_open"]


def _heading_levels(text: str) -> list[str]:
    """Returns the levels of all headings as one text, since their order counts."""
    return [" ".join(token.tag for token in parser().parse(text) if token.type == "heading_open")]


def _list_items(text: str) -> list[str]:
    return ["item" for token in parser().parse(text) if token.type == "list_item_open"]


KEPT: dict[str, Find] = {
    "formulas": _formulas,
    "links": _links,
    "code spans": _code_spans,
    "placeholders": _placeholders,
    "templates": _templates,
    "HTML tags": _tags,
    "table rows": _table_bars,
    "bold stretches": _bold_words,
    "heading levels": _heading_levels,
}
KEPT_WITH_LISTS: dict[str, Find] = {**KEPT, "list items": _list_items}


def differences(english: str, translation: str, kept: dict[str, Find] = KEPT) -> Iterator[str]:
    """Yields what `translation` does not keep of `english`.

    >>> list(differences("Use `pack` on $n$ devices.", "$n$ 台のデバイスで使います。"))
    ["code spans differ: ['pack'] became []"]
    """
    for what, find in kept.items():
        wanted, found = find(english), find(translation)
        if Counter(wanted) != Counter(found):
            yield f"{what} differ: {wanted} became {found}"
