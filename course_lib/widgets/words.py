"""Texts as pieces of a page."""

from __future__ import annotations

import re

from course_lib.pictures.shapes import Node, node

_CODE = re.compile(r"`([^`]+)`")


def words(text: str) -> list[Node | str]:
    """Returns a text with what stands between backticks as code.

    >>> [piece if isinstance(piece, str) else piece[0] for piece in words("over `x`, not `y`")]
    ['over ', 'code', ', not ', 'code']
    """
    pieces = [node("code", piece) if at % 2 else piece for at, piece in enumerate(_CODE.split(text))]
    return [piece for piece in pieces if piece]
