"""Lays out the sources of one language's book: notebooks, pages with generated parts, contents, settings."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import yaml

from course_lib.i18n import set_language
from lessons.lesson_01_mesh_and_layout.explorer import MeshLayoutExplorer
from lessons.lesson_12_scaling_out.puzzle_widget import Puzzle
from lessons.lesson_12_scaling_out.puzzles import PUZZLES
from tools.book.facts import python_versions, tested_packages
from tools.book.licences import notices
from tools.book.operations import operation_values
from tools.book.results import measured_values
from tools.lesson import markdown_blocks
from tools.lesson.build import translations
from tools.lesson.markdown_blocks import page_parser
from tools.lesson.sources import SOURCE_LANGUAGE

LESSONS, APPENDICES = "[0-9][0-9]_*.ipynb", "A[0-9]_*.ipynb"
# The pages after the lessons, in the order in which the contents list them.
PAGES = (
    "puzzles",
    "results",
    "initial_values",
    "step_parts",
    "operations",
    "what_next",
    "library",
    "glossary",
    "troubleshooting",
    "versions",
    "notices",
)


@dataclass(frozen=True)
class Sources:
    """What the book is made from.

    Attributes:
        root: the repository, whose pyproject.toml, lock file and workflows the versions page quotes.
        notebooks: a folder with one folder of executed notebooks for each language.
        repository: the public address of the repository, or "" while it has none.
        branch: the branch that the Colab buttons open.

    Raises:
        SystemExit: the address is not one that Colab can open.
    """

    root: Path
    notebooks: Path
    repository: str
    branch: str

    def __post_init__(self) -> None:
        parts = self.repository.removeprefix("https://github.com/").split("/")
        if self.repository and (not self.repository.startswith("https://github.com/") or len(parts) != 2):
            raise SystemExit(
                f"The repository's address is {self.repository!r}; it must read "
                'https://github.com/OWNER/NAME, or "" while there is none ([tool.course] in pyproject.toml).'
            )

    @property
    def book(self) -> Path:
        """The folder of the book's own sources."""
        return self.root / "jupyter_book"

    def catalogue(self, language: str) -> Path:
        """Returns the path of the catalogue of the book's own pages."""
        return self.book / "locale" / f"{language}.po"


@dataclass(frozen=True)
class Edition:
    """The book in one language.

    Attributes:
        language: its code, such as "ja".
        name: what its readers call it.
        strings: the texts of the site's frame, such as the search box.
        lessons: the document name and the title of each lesson.
        appendices: the same of each appendix.
        pages: the document names of everything in the book, in order, the landing page first.
    """

    language: str
    name: str
    strings: dict[str, str]
    lessons: tuple[tuple[str, str], ...]
    appendices: tuple[tuple[str, str], ...]
    pages: tuple[str, ...]


def find_editions(sources: Sources) -> tuple[Edition, ...]:
    """Returns the book in each language that has a catalogue of its pages, the source language first."""
    translations = sorted(path.stem for path in sources.book.glob("locale/*.po"))
    return tuple(_edition(sources, language) for language in (SOURCE_LANGUAGE, *translations))


def _edition(sources: Sources, language: str) -> Edition:
    translate = translations(sources.catalogue(language))
    frame = yaml.safe_load((sources.book / "strings.yml").read_text(encoding="utf-8"))
    strings = {name: translate(english) for name, english in frame.items()}
    lessons, appendices = (_titles(sources.notebooks / language, each) for each in (LESSONS, APPENDICES))
    return Edition(
        language=language,
        name=strings["language_name"],
        strings=strings,
        lessons=lessons,
        appendices=appendices,
        pages=("index", *(name for name, _title in (*lessons, *appendices)), *PAGES),
    )


def _titles(folder: Path, pattern: str) -> tuple[tuple[str, str], ...]:
    return tuple((path.stem, _title(path)) for path in sorted(folder.glob(pattern)))


def _title(notebook: Path) -> str:
    """Returns the first heading of a notebook."""
    first, *_others = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    heading = next(line for line in "".join(first["source"]).splitlines() if line.startswith("# "))
    return heading.removeprefix("# ").strip()


def stage(sources: Sources, editions: Sequence[Edition], edition: Edition, folder: Path) -> None:
    """Writes everything that Jupyter Book reads for one language to `folder`."""
    folder.mkdir(parents=True)
    for lesson, _heading in (*edition.lessons, *edition.appendices):
        shutil.copy(sources.notebooks / edition.language / f"{lesson}.ipynb", folder)
    if (programs := sources.notebooks / "plain").is_dir():  # lessons link to them: ../plain/NN_topic.py
        shutil.copytree(programs, folder.parent / "plain", dirs_exist_ok=True)
    _write_pages(sources, edition, folder)
    _write_yaml(folder / "_toc.yml", contents(edition))
    _write_yaml(folder / "_config.yml", settings(sources, editions, edition))


def contents(edition: Edition) -> dict[str, Any]:
    """Returns the table of contents: what there is, in parts with captions."""
    lessons, appendices = ([name for name, _title in part] for part in (edition.lessons, edition.appendices))
    help_pages = [page for page in edition.pages[1:] if page not in (*lessons, *appendices)]
    parts = [
        (edition.strings["part_lessons"], lessons),
        (edition.strings["part_appendices"], appendices),
        (edition.strings["part_help"], help_pages),
    ]
    return {
        "format": "jb-book",
        "root": "index",
        "parts": [
            {"caption": caption, "chapters": [{"file": name} for name in names]}
            for caption, names in parts
            if names
        ],
    }


def settings(sources: Sources, editions: Sequence[Edition], edition: Edition) -> dict[str, Any]:
    """Returns Jupyter Book's settings: the shared ones, and what differs from language to language."""
    shared: dict[str, Any] = yaml.safe_load((sources.book / "config.yml").read_text(encoding="utf-8"))
    shared["title"] = edition.strings["title"]
    shared["sphinx"]["config"] |= {
        "language": edition.language,
        "templates_path": [str(sources.book / "templates")],
        "book_strings": edition.strings,
        "book_editions": {each.language: {"name": each.name, "pages": list(each.pages)} for each in editions},
        "book_repository": sources.repository,
        "book_branch": sources.branch,
    }
    return shared


def _write_yaml(path: Path, value: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(value, allow_unicode=True, sort_keys=False), encoding="utf-8")


def _write_pages(sources: Sources, edition: Edition, folder: Path) -> None:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, trim_blocks=True
    )
    translate = translations(sources.catalogue(edition.language))
    values = _page_values(sources, edition) | measured_values(edition.language, folder) | {"_": translate}
    for page in ("index", *PAGES):
        english = (sources.book / "pages" / f"{page}.md").read_text(encoding="utf-8")
        template = environment.from_string(markdown_blocks.translated(english, translate, page_parser()))
        (folder / f"{page}.md").write_text(template.render(values), encoding="utf-8")


def _page_values(sources: Sources, edition: Edition) -> dict[str, Any]:
    set_language(edition.language)
    return {
        "language": edition.language,
        "lessons": edition.lessons + edition.appendices,
        "repository": sources.repository,
        "explorer": MeshLayoutExplorer().to_html(),  # with its state, for a page with no kernel behind it
        "puzzles": [Puzzle(number) for number in range(1, len(PUZZLES) + 1)],
        "packages": tested_packages(sources.root),
        "pythons": python_versions(sources.root),
        "notices": notices(sources.book),
        "operations": operation_values(),
    }
