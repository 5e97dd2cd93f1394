"""Comments in code cells: the only words there that are translated."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_FOR_TOOLS = re.compile(r"#\s*(noqa|type:|fmt:|pragma|ruff|mypy|pylint|solution\b)")


@dataclass(frozen=True)
class Comment:
    """A comment, or several full-line comments that follow each other, as one text.

    Attributes:
        first_line: the number of its first line.
        end_line: the number of the line after its last.
        column: where it begins on its first line.
        text: its words, on one line, without "#".
    """

    first_line: int
    end_line: int
    column: int
    text: str


def comments(code: str) -> Iterator[Comment]:
    r"""Yields the comments of `code` that hold words for a reader.

    >>> [comment.text for comment in comments("# Two\n# lines.\nx = 1  # one\ny = 2  # noqa: E501")]
    ['Two lines.', 'one']
    """
    waiting: Comment | None = None
    for comment, alone in _single_comments(code):
        here = comment.first_line, comment.column
        if waiting and alone and here == (waiting.end_line, waiting.column):
            text = f"{waiting.text} {comment.text}"
            waiting = Comment(waiting.first_line, comment.end_line, comment.column, text)
            continue
        if waiting:
            yield waiting
        waiting = comment
        if not alone:
            yield waiting
            waiting = None
    if waiting:
        yield waiting


def translated(code: str, translate: Callable[[str], str]) -> str:
    """Returns `code` with every comment replaced by what `translate` makes of it; the code itself stays."""
    lines: list[str | None] = list(code.split("\n"))
    for comment in comments(code):
        text = translate(comment.text)
        if text != comment.text:
            first = code.split("\n")[comment.first_line][: comment.column]
            lines[comment.first_line : comment.end_line] = [None] * (comment.end_line - comment.first_line)
            lines[comment.first_line] = f"{first}# {text}"
    return "\n".join(line for line in lines if line is not None)


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


def _single_comments(code: str) -> Iterator[tuple[Comment, bool]]:
    for token in tokens(code):
        if token.type == tokenize.COMMENT and not _FOR_TOOLS.match(token.string):
            text = token.string.lstrip("#").strip()
            row, column = token.start[0] - 1, token.start[1]
            if re.search(r"[^\W\d_]", text):
                yield Comment(row, row + 1, column, text), not token.line[:column].strip()
