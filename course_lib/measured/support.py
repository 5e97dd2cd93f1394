"""Tables of what works, made from what ran: a row for each thing asked, a column for each who was asked."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from course_lib.i18n import _, num_columns, padded

EQUAL, DIFFERENT, NO_OP, ACCEPTED = "equal", "different", "no-op", "accepted"
ASYNCHRONOUS, MISREPORTED = "asynchronous", "misreported"
ERROR, CRASH, TIMEOUT = "error", "crash", "timeout"
TOLERANCE = 1e-5  # the largest difference from one device that still counts as equal

_FOLDER = files("course_lib") / "measured"
_INNER_WORD = re.compile(r"(?<=[a-z])(?=[A-Z][a-z]{3})")
_CELLS = "support"  # what tells these files from those with other measurements


@dataclass(frozen=True)
class Cell:
    """What became of one case.

    Attributes:
        verdict: "equal" (distributed, with the numbers of one device), "different" (distributed, with other
            numbers), "no-op" (no error, and not split as was asked), "accepted" (a mistake that raised no
            error), "asynchronous" (distributed, in no fixed order, and the loss fell), "misreported" (trained
            as on one device, with another loss told), "error", "crash" or "timeout".
        difference: the largest difference from one device; None where no numbers were compared.
        message: the error's type and first line.
        losses: before and after a training in no fixed order; None where the order is fixed.
    """

    verdict: str
    difference: float | None = None
    message: str = ""
    losses: tuple[float, float] | None = None

    def text(self) -> str:
        """Returns the cell in the reader's language; an error with its type."""
        if self.verdict == ERROR:
            return _("error: {kind}", kind=self.message.partition(":")[0])
        return {
            EQUAL: _("works") if self.difference is None else _("equals one device"),
            DIFFERENT: _("wrong values, no error"),
            NO_OP: _("not split, no error"),
            ACCEPTED: _("accepted, no error"),
            MISREPORTED: _("trains as one device, reports a wrong loss"),
            ASYNCHRONOUS: _("asynchronous: the loss falls"),
            CRASH: _("ends the process"),
            TIMEOUT: _("does not end"),
        }[self.verdict]


@dataclass(frozen=True)
class Support:
    """What each was asked, and what became of it.

    Attributes:
        how: the circumstances, a value for each name: the command, versions.
        cells: by what was asked, then by who was asked; without those that it was not asked of.
    """

    how: Mapping[str, str]
    cells: Mapping[str, Mapping[str, Cell]] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A table with the titles of the reader's language. It shows itself as text and as HTML.

    Attributes:
        columns: the titles of the columns.
        rows: the texts of each row, by its title.
    """

    columns: tuple[str, ...]
    rows: Mapping[str, tuple[str, ...]]

    def __repr__(self) -> str:
        lines = [("", *self.columns), *((title, *texts) for title, texts in self.rows.items())]
        widths = [max(map(num_columns, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(map(padded, line, widths)).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(title)}</th>" for title in ("", *self.columns))
        body = "".join(_html_row(title, texts) for title, texts in self.rows.items())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def of_finding(
    *,
    distributed: bool = False,
    difference: float | None = None,
    mistaken: bool = False,
    losses: Sequence[float] | None = None,
    reported_difference: float = 0.0,
) -> Cell:
    """Returns the cell of a case that ended without an error.

    Args:
        distributed: whether each device holds as much of every variable as was asked for.
        difference: the largest difference from the same computation on one device, if there is one.
        mistaken: whether what was asked is a mistake, which an error should have named.
        losses: before and after a training in no fixed order, whose numbers cannot equal one device's.
        reported_difference: the largest difference of a loss that a training told, beside its variables.
    """
    if mistaken:
        return Cell(ACCEPTED)
    if not distributed:
        return Cell(NO_OP, difference)
    if losses is not None:
        before, after = losses
        return Cell(ASYNCHRONOUS if after < before else DIFFERENT, losses=(before, after))
    return Cell(EQUAL) if difference is None else _compared(difference, reported_difference)


def _compared(difference: float, reported_difference: float) -> Cell:
    if not difference <= TOLERANCE:
        return Cell(DIFFERENT, difference)
    if not reported_difference <= TOLERANCE:
        return Cell(MISREPORTED, reported_difference)
    return Cell(EQUAL, max(difference, reported_difference))


def table(support: Support, rows: Mapping[str, str], columns: Mapping[str, str]) -> Table:
    """Returns the table of what was recorded, with a dash where nothing was asked.

    Args:
        support: what was recorded.
        rows: the title of each row, by what was asked.
        columns: the title of each column, by who was asked.
    """
    texts = {
        row: {column: cell.text() for column, cell in cells.items()} for row, cells in support.cells.items()
    }
    return Table(
        tuple(columns.values()),
        {title: tuple(texts[row].get(column, "–") for column in columns) for row, title in rows.items()},
    )


def recorded(name: str) -> Support | None:
    """Returns what was recorded under that name; None where nothing was."""
    path = _FOLDER / f"{name}.json"
    if not path.is_file():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    cells = {
        row: {column: _cell(**cell) for column, cell in columns.items()}
        for row, columns in content[_CELLS].items()
    }
    return Support(content["how"], cells)


def _cell(losses: Sequence[float] | None = None, **told: Any) -> Cell:
    """Returns a cell as it was written: JSON has lists for tuples."""
    return Cell(**told, losses=None if losses is None else (losses[0], losses[1]))


def save(support: Support, name: str, folder: Path) -> Path:
    """Writes what was found to `folder` and returns the file."""
    cells = {
        row: {column: asdict(cell) for column, cell in columns.items()}
        for row, columns in support.cells.items()
    }
    path = folder / f"{name}.json"
    content = {"how": dict(support.how), _CELLS: cells}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def _html_row(title: str, texts: tuple[str, ...]) -> str:
    cells = "".join(f"<td>{breakable(text)}</td>" for text in texts)
    return f'<tr><th scope="row">{breakable(title)}</th>{cells}</tr>'


def breakable(text: str) -> str:
    """Returns a text as HTML whose long names may break between their words.

    >>> breakable("error: NotImplementedError")
    'error: Not<wbr>Implemented<wbr>Error'
    """
    return _INNER_WORD.sub("<wbr>", html.escape(text))
