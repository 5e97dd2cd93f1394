"""The glossary of the book holds what the lessons introduce."""

import re
from collections.abc import Iterator
from itertools import pairwise

from markdown_it.token import Token

from tests.course import COURSE
from tools.lesson.markdown_blocks import joined, page_parser, parser

# Bold in running text, and no term.
EMPHASIS = {
    "couple",
    "in the data",
    "of 1",
    "per replica",
    "program b",
    "program e",
    "reference step",
    "run",
    "stop",
}


def plain(name: str) -> str:
    """Returns a name as the search compares it, in lower case and in the singular."""
    return re.sub(r"(?:(?<=ch)e)?s$", "", name.strip().lower())


def bold_terms(text: Token) -> Iterator[tuple[str, str]]:
    """Yields what is bold in the midst of a text, up to three words, and the same with the word after it."""
    children = text.children or []
    for index, token in enumerate(children):
        if token.type == "strong_open" and any(child.content for child in children[:index]):
            name = children[index + 1].content
            after = "".join(child.content for child in children[index + 3 : index + 4])
            if len(name.split()) <= 3 and not re.search(r"[.,:?!]", name):
                yield name, name + re.match(r"( [\w-]+)?", after)[0]


def explained() -> set[str]:
    """Returns the names in the headings of the entries, and those that the definitions mark."""
    names: list[str] = []
    tokens = page_parser().parse((COURSE.root / "jupyter_book/pages/glossary.md").read_text("utf-8"))
    for before, text in pairwise(tokens):
        if before.type == "dt_open":
            names += re.split(", | and ", text.content)
        if text.type == "inline":
            names += re.findall(r"\*+([^*]+)\*+", text.content.replace("\n", " "))
    return {plain(name) for name in names}


def test_each_term_that_a_lesson_introduces_in_running_text_is_in_the_glossary():
    known = explained() | EMPHASIS
    cells = [cell for lesson in COURSE.lessons() for cell in lesson.cells if cell.kind == "markdown"]
    tokens = [token for cell in cells for token in parser().parse(joined(cell.source))]
    # Of paragraphs, and not of lists and tables
    running = [token for token in tokens if token.type == "inline" and token.level == 1]
    terms = [names for text in running for names in bold_terms(text)]
    assert [name for name, longer in terms if not {plain(name), plain(longer)} & known] == []
