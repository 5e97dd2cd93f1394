"""The programs in the page of silent mistakes: each runs behind the page's first, in a process of its own.

`python -m tools.book.page_programs` writes what they print, or how they end, into the block below each. One
that does not print the same every time has the word `sometimes` there, and keeps what it says.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from course_lib import messages
from tools.cases import runner

PAGE = Path(__file__).resolve().parents[2] / "jupyter_book/pages/silent_mistakes.md"
_PROGRAM = re.compile(r"```python\n([^`]*)```\n\n```text( sometimes)?\n([^`]*)```\n")
_FIRST = re.compile(r"```python\n([^`]*)```\n")


class Program(NamedTuple):
    """A program of the page, and what the page says that it prints."""

    code: str
    varies: bool
    printed: str


def programs() -> list[Program]:
    """Returns the programs of the page, each with the page's first in front of it."""
    text = PAGE.read_text(encoding="utf-8")
    (first,) = _FIRST.findall(text.partition("\n## ")[0])
    found = _PROGRAM.findall(text)
    return [Program(f"{first}\n{code}", bool(varies), printed) for code, varies, printed in found]


def run(chosen: list[Program]) -> Iterator[tuple[int, str]]:
    """Yields the place of each program in the list and what it printed, as they end."""
    pairs = enumerate(chosen)
    cases = [runner.Case(str(place), partial(_run, each.code), alone=True) for place, each in pairs]
    for name, record in runner.run(cases):
        yield int(name), record.get("printed", f"the process ended: {record.get('message')}\n")


def _run(code: str) -> runner.Record:
    file = f"<program {os.getpid()}>"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)  # AutoGraph reads it
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(compile(code, file, "exec"), {"__name__": "__main__"})
        except Exception as error:
            print(messages.last_line(error))
    return {"printed": printed.getvalue()}


if __name__ == "__main__":
    import tensorflow  # noqa: F401  # so that the processes, which are forks of this one, need not

    found = dict(run(programs()))
    printed = (each.printed if each.varies else found[place] for place, each in enumerate(programs()))
    filled = _PROGRAM.sub(
        lambda match: f"```python\n{match[1]}```\n\n```text{match[2] or ''}\n{next(printed)}```\n",
        PAGE.read_text(encoding="utf-8"),
    )
    PAGE.write_text(filled, encoding="utf-8")
