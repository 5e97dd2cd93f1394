"""What keeps a lesson's source pleasant to read and compare: a sentence a line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.lesson.cells import Cell
from tools.lesson.markdown_blocks import blocks
from tools.lesson.sources import Lesson

MAX_LINE_LENGTH = 110  # as ruff has it, "# " included

_CODE_OR_FORMULA = re.compile(r"(?P<ticks>`+).+?(?P=ticks)|\$[^$]+\$|\]\([^)]*\)", re.S)
_END = re.compile(r"""[.!?]["'”)*_]*\s+(?=["'“(*_\[]*[A-Z0-9])""")
_MARKER = re.compile(r"^[\s>]*(?:(?:[-*+]|\d+[.)])\s+)?")
_LABEL = re.compile(r"\*\*[^*]+\*\*$|\d+[.)]$")  # "**Note.**" belongs to the sentence after it
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|cf|vs|etc|Fig|No)\.$")


def sentences(text: str) -> list[str]:
    """Returns the sentences of a paragraph on one line.

    >>> sentences("**Note.** Is it 0.5? See `a. B` (or not). 3 rows.")
    ['**Note.** Is it 0.5?', 'See `a. B` (or not).', '3 rows.']
    """
    masked = _CODE_OR_FORMULA.sub(lambda match: "X" * len(match[0]), text)
    found, start = [], 0
    for match in _END.finditer(masked):
        sentence = text[start : match.end()].rstrip()
        if not _LABEL.match(sentence) and not _ABBREVIATION.search(sentence):
            found.append(sentence)
            start = match.end()
    return [*found, text[start:]] if text[start:] else found


def lines_of_prose(lesson: Lesson) -> Iterator[str]:
    """Yields the lines of prose that hold more than one sentence, or are long and could be broken."""
    for cell in lesson.cells:
        for line in _prose(cell) if cell.kind == "markdown" else ():
            here = f"cell {cell.cell_id!r}, {line[:60]!r}"
            if len(sentences(_MARKER.sub("", line))) > 1:
                yield f"{here}: more than one sentence on a line"
            if len(f"# {line}") > MAX_LINE_LENGTH and " " in line.strip():
                yield f"{here}: a line of more than {MAX_LINE_LENGTH} characters"


def _prose(cell: Cell) -> Iterator[str]:
    lines = cell.source.split("\n")
    for block in blocks(cell.source):
        if not block.prefix.startswith("#") and not block.text.startswith(("|", "<")):
            yield from lines[block.first_line : block.end_line]
