"""Markdown cut into its blocks, and put together again with other words.

A page of the book is translated block by block, a cell of a lesson as a whole.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.attrs import attrs_block_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from course_lib.i18n import is_wide

Translate = Callable[[str], str]

_TABLE_CELLS = ("th_open", "td_open")
_DESCRIPTION = re.compile(r'\b(?:alt|title|aria-label)="[^"]*[^\W\d_]')
_NOT_PROSE = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|`+.*?`+|\$[^$]+\$|\]\([^)]*\)|<[^>]+>|https?://\S+", re.S)


@cache  # to make one takes longer than to read most texts
def parser() -> MarkdownIt:
    """Returns the parser for the Markdown that JupyterLab, Colab and the book have in common."""
    return _new_parser()


@cache
def page_parser() -> MarkdownIt:
    """Returns the parser for the book's own pages, which may hold definitions and attributes, too."""
    return _new_parser().use(deflist_plugin).use(attrs_block_plugin)


def _new_parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table").use(dollarmath_plugin)


@dataclass(frozen=True)
class Block:
    """A stretch of lines that is one text: a heading, a paragraph, a list item, a table row, a line of HTML.

    Attributes:
        first_line: the number of its first line.
        end_line: the number of the line after its last.
        prefix: what stands before the text on its first line, such as "- " or "## ".
        text: the text on one line.
    """

    first_line: int
    end_line: int
    prefix: str
    text: str


def blocks(markdown: str, read: MarkdownIt | None = None) -> Iterator[Block]:
    r"""Yields the blocks of `markdown` that hold prose, in order.

    Args:
        markdown: a cell of a lesson, or with another `read` a page.
        read: what parses it; `parser()` where nothing is given.

    >>> [block.text for block in blocks("# Title\n\n- one\n  item\n\n```python\ncode\n```")]
    ['Title', 'one item']
    """
    lines = markdown.split("\n")
    before = ""
    for token in (read or parser()).parse(markdown):
        if before not in _TABLE_CELLS:  # a table is translated row by row
            yield from (block for block in _blocks_of(token, lines) if is_prose(block.text))
        before = token.type


def translated(markdown: str, translate: Translate, read: MarkdownIt | None = None) -> str:
    """Returns `markdown` with what `translate` makes of the text of every block, each text on one line."""
    lines: list[str | None] = list(markdown.split("\n"))
    for block in blocks(markdown, read):
        text = translate(block.text)
        if text != block.text or block.end_line - block.first_line > 1:
            lines[block.first_line : block.end_line] = [None] * (block.end_line - block.first_line)
            lines[block.first_line] = f"{block.prefix}{text}"
    return "\n".join(line for line in lines if line is not None)


def joined(markdown: str) -> str:
    r"""Returns `markdown` with the text of every block on one line, as notebooks hold it.

    >>> joined("# Mesh\n\nA grid.\nIt has\nnames."), joined("- 格子です。\n  次元には\n  名前があります。")
    ('# Mesh\n\nA grid. It has names.', '- 格子です。次元には名前があります。')
    """
    return translated(markdown, lambda text: text)


def is_prose(text: str) -> bool:
    """Returns whether a text holds words outside code spans, formulas, addresses, tags and templates.

    The description of a picture is prose: `alt="Eight devices"`.
    """
    described = _DESCRIPTION.search(text)
    return bool(described or re.search(r"[^\W\d_]", _NOT_PROSE.sub(" ", text)))


def _blocks_of(token: Token, lines: list[str]) -> Iterator[Block]:
    if token.map is None:
        return
    first, end = token.map
    if token.type == "tr_open":
        yield Block(first, first + 1, "", lines[first].strip())
    elif token.type == "html_block":
        for number, line in enumerate(lines[first:end], first):
            yield Block(number, number + 1, line[: len(line) - len(line.lstrip())], line.strip())
    elif token.type == "inline":
        yield _inline_block(token, first, end, lines)


def _inline_block(token: Token, first: int, end: int, lines: list[str]) -> Block:
    start = token.content.split("\n", 1)[0]
    prefix = lines[first][: lines[first].rindex(start)]
    return Block(first, max(end, first + 1), prefix, _one_line(token.content))


def _one_line(text: str) -> str:
    """Returns the lines of a text as one: a blank between two, but none beside a full-width character."""
    first, *others = [" ".join(line.split()) for line in text.split("\n")]
    for line in filter(None, others):
        first += line if is_wide(first[-1]) or is_wide(line[0]) else f" {line}"
    return first


def html_of(line: str) -> str:
    """Returns a line of Markdown whose only marks are code spans, as HTML.

    >>> html_of("`fit` on <one> batch")
    '<code>fit</code> on &lt;one&gt; batch'
    """
    return re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(line, quote=False))
