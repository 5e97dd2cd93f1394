"""Cells as their author writes them, and the names of those to which the author gave none.

Names are ids in the notebooks: catalogues, tests and the book refer to them, so they are the same in every
language. The rules are in docs/authoring.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

# What a name says about the part that its cell plays.
_PARTS = {
    "markdown": re.compile(r"opening$|takeaways$"),
    "code": re.compile(r"setup$|(predict|reveal|exercise|check)(?=-)"),
}
_HEADING = re.compile(r"#+ +(.+)")


@dataclass(frozen=True)
class Cell:
    """One cell of a lesson.

    Attributes:
        kind: "markdown" or "code".
        source: its text, without the header line.
        cell_id: its name, the same in every language; "" where there is neither a given nor a derived one.
        tags: the parts that it plays.
        asked: what a card asks, as the author wrote it, with the answers; "" for any other cell.
    """

    kind: str
    source: str
    cell_id: str
    tags: tuple[str, ...] = ()
    asked: str = ""


def named(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Returns the cells of a lesson with derived names where none is given, and tagged with their parts.

    >>> cells = [Cell("markdown", "# 1", ""), Cell("markdown", "A row.", ""), Cell("code", "1", "predict-x")]
    >>> [(cell.cell_id, cell.tags) for cell in named(cells)]
    [('opening', ('opening',)), ('x-given', ()), ('predict-x', ('predict',))]
    """
    code = list(_with_named_code(cells))
    around = zip([None, *code[:-1]], code, [*code[1:], None], strict=True)
    return tuple(_tagged(_with_name(*three)) for three in around)


def _with_named_code(cells: Sequence[Cell]) -> Iterator[Cell]:
    """Yields the cells, the first code cell and the checks of exercises with their names."""
    before: Cell | None = None
    first = next((cell for cell in cells if cell.kind == "code"), None)
    for cell in cells:
        name = cell.cell_id
        if cell.kind == "code" and not name:
            name = "setup" if cell is first else _renamed(before, "exercise-", "check-")
        before = replace(cell, cell_id=name)
        yield before


def _with_name(before: Cell | None, cell: Cell, after: Cell | None) -> Cell:
    """Returns a text with the name that its place gives it; any other cell as it is."""
    if cell.kind == "code" or cell.cell_id:
        return cell
    heading = _HEADING.match(cell.source)
    names = (
        "opening" if before is None else "",
        "" if heading else _renamed(before, "reveal-", "", "-why"),
        _renamed(after, "predict-", "", "-given"),
        _renamed(after, "", "", "-text"),
        _slug(heading[1]) if heading else "",
    )
    return replace(cell, cell_id=next(filter(None, names), ""))


def _renamed(cell: Cell | None, prefix: str, new_prefix: str, suffix: str = "") -> str:
    """Returns the name of a code cell with another prefix; "" where that is no code cell of such a name."""
    if cell is None or cell.kind != "code" or not cell.cell_id or not cell.cell_id.startswith(prefix):
        return ""
    return f"{new_prefix}{cell.cell_id.removeprefix(prefix)}{suffix}"


def _slug(heading: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", re.sub(r"^[^a-z]+", "", heading.lower())))


def _tagged(cell: Cell) -> Cell:
    part = _PARTS[cell.kind].match(cell.cell_id)
    tags = cell.tags if part is None or part[0] in cell.tags else (part[0], *cell.tags)
    return replace(cell, tags=tags)
