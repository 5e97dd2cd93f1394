"""Two small lessons with every kind of cell and output that the book must show, for tests of the tools."""

from __future__ import annotations

import base64
import io
import shutil
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from course_lib.exercises.cards import Card
from course_lib.exercises.predictions import Revealed
from course_lib.exercises.questions import parsed
from tests.course import from_lesson
from tools.book import __main__ as book
from tools.book.explorers import write_tables
from tools.book.pages import Sources
from tools.lesson.sources import Course

MeshLayoutExplorer = from_lesson("mesh_and_layout.explorer", "MeshLayoutExplorer")

ROOT = Path(__file__).resolve().parents[2]
LESSONS = ("first", "second")
PART = """
[parts.small]
title = "Small"
lessons = {first = "One.", second = "Two."}

[parts."""
REPOSITORY = "https://github.com/someone/some-course"
TITLES = {
    "en": ("Mesh and layout", "Data-parallel training"),
    "ja": ("メッシュとレイアウト", "データ並列で学習する"),
}
TEXTS = {
    "en": "The weights are replicated and the batch is split over eight devices: $x \\in \\mathbb{R}^{8}$.",
    "ja": "重みは複製され、バッチは8台のデバイスに分割されました。$x \\in \\mathbb{R}^{8}$です。",
}
WHY = "Each device counts."  # why the right answer of a prediction is right
WIDE = "$$\\sum_{i=1}^{n} a_i b_i + \\prod_{j} \\left(1 + e_j\\right) + 123456789012345678901234567890$$"
FOLDED = "<details><summary>?</summary>\n\n```python\nx = 1\n```\n\n</details>"
CARDS: dict[str, Any] = {}  # what makes each card of these lessons, once they are written
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 80 40" width="80" height="40">'
    '<rect width="40" height="40" fill="#f0b429"/><rect x="40" width="40" height="40" fill="#5cc8e0"/></svg>'
)


def png() -> str:
    """Returns a grey picture, encoded as a notebook stores it."""
    file = io.BytesIO()
    Image.new("L", (600, 300), 200).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def display(data: dict[str, Any], metadata: dict[str, Any] | None = None) -> Any:
    return new_output("display_data", data=data, metadata=metadata or {})


def stream(text: str) -> Any:
    return new_output("stream", name="stdout", text=text)


def prediction(number: int) -> list[Any]:
    """Returns the cells of a prediction: its card, and what is measured."""
    asked = f"{TEXTS['en']}\n\n- [x] `{number}`\n  {WHY}\n- [ ] `0`\n  Nothing is not split."
    CARDS[f"first-{number}"] = partial(Card, parsed(asked, f"first-{number}"))
    card = display({"text/html": CARDS[f"first-{number}"]().to_html(), "text/plain": "a card"})
    html = Revealed(f"{number}{(number - 1) * ' wide' * 40}", None, WHY)._repr_html_()
    measured = new_output("execute_result", {"text/html": html, "text/plain": "…"}, execution_count=1)
    return [
        new_code_cell(part, id=f"{part}-{number}", outputs=[shown], metadata={"tags": [part]})
        for part, shown in (("predict", card), ("reveal", measured))
    ]


def lesson(language: str, title: str) -> Any:
    """Returns a notebook with every kind of output."""
    curve = {"image/png": png(), "text/plain": "<IPython.core.display.Image object>"}
    outputs = {
        "print(41)": [stream("41 " * 60 + "\n")],
        "figure": [display({"image/svg+xml": SVG, "text/plain": "device 0: rows 0-3\ndevice 1: rows 4-7"})],
        "curves": [
            display(curve, {"image/png": {"alt": "Loss falls from 0.7 to 0.3."}}),
            display({"image/svg+xml": SVG, "text/plain": "a second picture"}),
        ],
        "labels": [
            stream("before\n"),
            display({"image/svg+xml": SVG, "text/plain": "between"}),
            stream("after\n"),
        ],
        "emptied": [display({"text/plain": ""}), stream("what stays\n")],
        "explorer": [display({"text/html": MeshLayoutExplorer().to_html(), "text/plain": "an explorer"})],
    }
    prose = [f"# {title}\n\n{TEXTS[language]}", f"## 1. {title}\n\n{WIDE}\n\n{FOLDED}"]
    cells = [new_markdown_cell(text, id=f"text-{at}") for at, text in enumerate(prose)]
    cells += [
        new_code_cell(code, id=f"code-{at}", outputs=shown)
        for at, (code, shown) in enumerate(outputs.items())
    ]
    cells += [*prediction(1), *prediction(2)]
    kernel = {"name": "python3", "display_name": "Python 3"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})


def write_lessons(folder: Path) -> Path:
    """Writes a course of both lessons in both languages, executed, to `folder` and returns it."""
    shutil.copytree(ROOT / "lessons" / "locale", folder / "lessons" / "locale")
    order = (ROOT / "lessons" / "order.toml").read_text("utf-8")  # pages refer to the lessons in it
    (folder / "lessons" / "order.toml").write_text(order.replace("\n[parts.", PART, 1), "utf-8")
    course = Course(folder)
    for language, titles in TITLES.items():
        (folder / "notebooks" / language).mkdir(parents=True)
        for topic, title in zip(LESSONS, titles, strict=True):
            nbformat.write(lesson(language, title), course.notebook(language, topic))
    return folder


def sources(folder: Path, repository: str = "") -> Sources:
    """Returns what the book of a course in a folder is made from."""
    return Sources(ROOT, Course(folder, repository))


def build(folder: Path, lessons: Path, repository: str = "") -> Path:
    """Builds the book of the course in `lessons` below `folder`."""
    tables = partial(write_tables, makers={"mesh_layout": MeshLayoutExplorer, **CARDS})  # in these lessons
    with patch.object(book, "write_tables", tables):
        book.build_book(sources(lessons, repository), folder / "work", folder / "site")
    return folder / "site"
