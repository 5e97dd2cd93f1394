"""Comments in code cells: the only words there that are translated."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Iterator

_FOR_TOOLS = re.compile(r"#\s*(noqa|type:|fmt:|pragma|ruff|mypy|pylint)")


def comments(code: str) -> Iterator[tuple[int, int, str]]:
    r"""Yields line, column and words of the comments in `code` that hold words for a reader.

    >>> list(comments("# One\nx = 1  # two\ny = 2  # noqa: E501\n# 3"))
    [(0, 0, 'One'), (1, 7, 'two')]
    """
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError):  # no Python, as with a magic
        return
    for token in tokens:
        words = token.string.lstrip("#").strip()
        has_letters = re.search(r"[^\W\d_]", words) and not _FOR_TOOLS.match(token.string)
        if token.type == tokenize.COMMENT and has_letters:
            yield token.start[0] - 1, token.start[1], words


def translated(code: str, translate: Callable[[str], str]) -> str:
    """Returns `code` with every comment replaced by what `translate` makes of it; the code itself stays."""
    lines = code.split("\n")
    for line, column, words in comments(code):
        in_one_line = " ".join(translate(words).split())
        lines[line] = f"{lines[line][:column]}# {in_one_line}"
    return "\n".join(lines)
