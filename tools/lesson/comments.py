"""Comments in code cells: the only words there that are translated."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_FOR_TOOLS = re.compile(r"#\s*(noqa|type:|fmt:|pragma|ruff|mypy|pylint)")


@dataclass(frozen=True)
class Comment:
    """A comment.

    Attributes:
        line: the number of its line, from 0.
        column: where it begins there.
        text: its words, without "#".
    """

    line: int
    column: int
    text: str


def comments(code: str) -> Iterator[Comment]:
    r"""Yields the comments of `code` that hold words for a reader.

    >>> [comment.text for comment in comments("# One\nx = 1  # two\ny = 2  # noqa: E501\n# 3")]
    ['One', 'two']
    """
    for token in tokens(code):
        text = token.string.lstrip("#").strip()
        has_words = re.search(r"[^\W\d_]", text) and not _FOR_TOOLS.match(token.string)
        if token.type == tokenize.COMMENT and has_words:
            yield Comment(token.start[0] - 1, token.start[1], text)


def translated(code: str, translate: Callable[[str], str]) -> str:
    """Returns `code` with every comment replaced by what `translate` makes of it; the code itself stays."""
    lines = code.split("\n")
    for comment in comments(code):
        before = lines[comment.line][: comment.column]
        lines[comment.line] = f"{before}# {translate(comment.text)}"
    return "\n".join(lines)


def tokens(code: str) -> list[tokenize.TokenInfo]:
    """Returns the tokens of a code cell; an empty list where it is not Python, as with a magic."""
    try:
        return list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError):
        return []


def without_comments(code: str) -> list[str]:
    """Returns what `code` tells the interpreter: equal for two languages of one cell."""
    silent = (tokenize.COMMENT, tokenize.NL)
    return [token.string for token in tokens(code) if token.type not in silent] or [code]
