"""Lays out the sources of one language's book: notebooks, pages with generated parts, contents, settings."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import yaml

from course_lib.i18n import set_language
from tools.book.explorers import widgets
from tools.book.facts import python_versions, tested_packages
from tools.book.features import feature_values
from tools.book.licences import notices
from tools.book.operations import operation_values
from tools.book.published import published_values
from tools.book.results import measured_values
from tools.book.ways import places
from tools.lesson import markdown_blocks
from tools.lesson.maps import minutes
from tools.lesson.markdown_blocks import page_parser
from tools.lesson.sources import SOURCE_LANGUAGE, Course, LessonError
from tools.lesson.texts import translations

# The pages after the lessons, in the order in which the contents list them.
PAGES = (
    "puzzles",
    "results",
    "initial_values",
    "step_parts",
    "how_good",
    "silent_mistakes",
    "operations",
    "features",
    "what_next",
    "library",
    "glossary",
    "troubleshooting",
    "versions",
    "notices",
)
# Addresses of lessons that are no more, and the lessons that answer there now.
MOVED = {"clients_and_servers": "parameter_servers"}
REFERRED = (
    "puzzles",
    "silent_mistakes",
    "operations",
    "features",
    "troubleshooting",
)  # lessons name these pages by their titles


@dataclass(frozen=True)
class Sources:
    """What the book is made from.

    Attributes:
        root: the repository, whose pyproject.toml, lock file and workflows the versions page quotes.
        course: the lessons, executed in each language, and their public address.

    Raises:
        SystemExit: the address is not one that Colab can open.
    """

    root: Path
    course: Course

    def __post_init__(self) -> None:
        repository = self.course.repository
        parts = repository.removeprefix("https://github.com/").split("/")
        if repository and (not repository.startswith("https://github.com/") or len(parts) != 2):
            raise SystemExit(
                f"The repository's address is {repository!r}; it must read "
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
        parts: the title of each part, and the topic and title of each of its lessons.
    """

    language: str
    name: str
    strings: dict[str, str]
    parts: dict[str, dict[str, str]]

    @property
    def topics(self) -> list[str]:
        """The topics of its lessons, in order: the names of their pages."""
        return [topic for lessons in self.parts.values() for topic in lessons]

    @property
    def pages(self) -> list[str]:
        """The names of all pages in order, the landing page first."""
        return ["index", *self.topics, *PAGES]


def find_editions(sources: Sources) -> tuple[Edition, ...]:
    """Returns the book in each language that has a catalogue of its pages, the source language first."""
    translations = sorted(path.stem for path in sources.book.glob("locale/*.po"))
    return tuple(_edition(sources, language) for language in (SOURCE_LANGUAGE, *translations))


def _edition(sources: Sources, language: str) -> Edition:
    translate = translations(sources.catalogue(language))
    frame = yaml.safe_load((sources.book / "strings.yml").read_text(encoding="utf-8"))
    strings = {name: translate(english) for name, english in frame.items()}
    course = sources.course
    shared = translations(course.shared_catalogue(language))
    parts = {
        shared(part.title): {
            place.topic: course.title(language, place.topic)
            for place in part.places
            if course.notebook(language, place.topic).exists()
        }
        for part in course.parts
    }
    return Edition(language, strings["language_name"], strings, parts)


def stage(sources: Sources, editions: Sequence[Edition], edition: Edition, folder: Path) -> None:
    """Writes everything that Jupyter Book reads for one language to `folder`."""
    folder.mkdir(parents=True)
    translate = translations(sources.catalogue(edition.language))
    english = {page: (sources.book / "pages" / f"{page}.md").read_text(encoding="utf-8") for page in REFERRED}
    titles = {page: translate(text.partition("\n")[0].removeprefix("# ")) for page, text in english.items()}
    for topic in edition.topics:
        text = sources.course.notebook(edition.language, topic).read_text(encoding="utf-8")
        for place in sources.course.places:  # pages are named by topics alone, so that their addresses stay
            text = text.replace(f"]({place.notebook}", f"]({place.topic}.ipynb")
        for page, title in titles.items():  # as a text in a language emphasises or quotes it
            for shown in (f"*{title}*", f"「{title}」"):
                text = text.replace(shown, f"[{shown}]({page}.md)")
        (folder / f"{topic}.ipynb").write_text(text, encoding="utf-8")
    programs = sources.course.root / "notebooks" / "plain"
    if programs.is_dir():  # lessons link to ../plain/topic.py
        shutil.copytree(programs, folder.parent / "plain", dirs_exist_ok=True)
    shutil.copytree(sources.root / "docs" / "pictures", folder / "pictures")
    _write_pages(sources, edition, folder)
    _write_yaml(folder / "_toc.yml", contents(edition))
    _write_yaml(folder / "_config.yml", settings(sources, editions, edition))


def contents(edition: Edition) -> dict[str, Any]:
    """Returns the table of contents: what there is, in parts with captions."""
    parts = {**edition.parts, edition.strings["part_help"]: PAGES}
    return {
        "format": "jb-book",
        "root": "index",
        "parts": [
            {"caption": caption, "chapters": [{"file": name} for name in names]}
            for caption, names in parts.items()
            if names
        ],
    }


def settings(sources: Sources, editions: Sequence[Edition], edition: Edition) -> dict[str, Any]:
    """Returns Jupyter Book's settings: the shared ones, and what differs from language to language."""
    shared: dict[str, Any] = yaml.safe_load((sources.book / "config.yml").read_text(encoding="utf-8"))
    ways = yaml.safe_load((sources.book / "ways.yml").read_text(encoding="utf-8"))
    shared["title"] = edition.strings["title"]
    shared["sphinx"]["config"] |= {
        "language": edition.language,
        "templates_path": [str(sources.book / "templates")],
        "book_strings": edition.strings,
        "book_editions": {each.language: {"name": each.name, "pages": list(each.pages)} for each in editions},
        "book_repository": sources.course.repository,
        "book_places": places(sources.course, ways, edition.parts, edition.strings),
        "book_colab": {
            topic: sources.course.colab_address(edition.language, topic) for topic in edition.topics
        },
    }
    return shared


def _write_yaml(path: Path, value: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(value, allow_unicode=True, sort_keys=False), encoding="utf-8")


def _write_pages(sources: Sources, edition: Edition, folder: Path) -> None:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, trim_blocks=True
    )
    translate = translations(sources.catalogue(edition.language))
    shared = translations(sources.course.shared_catalogue(edition.language))
    values = _page_values(sources, edition) | measured_values(edition.language, folder)
    values |= published_values(edition.language, folder) | {"_": translate}
    for page in ("index", *PAGES):
        english = (sources.book / "pages" / f"{page}.md").read_text(encoding="utf-8")
        template = environment.from_string(markdown_blocks.translated(english, translate, page_parser()))
        try:
            text = sources.course.resolved(template.render(values), shared)
        except LessonError as error:
            raise SystemExit(f"{page}.md in {edition.language}: {error}") from error
        (folder / f"{page}.md").write_text(text, encoding="utf-8")


def _lessons(course: Course, edition: Edition) -> dict[str, dict[str, Any]]:
    """Returns what the home page says of each lesson."""
    translate = translations(course.shared_catalogue(edition.language))
    return {
        topic: {
            "about": markdown_blocks.html_of(course.resolved(translate(lesson.place.about), translate)),
            "minutes": minutes(lesson),
            "predictions": sum("predict" in cell.tags for cell in lesson.cells),
        }
        for topic in edition.topics
        for lesson in [course.lesson(topic)]
    }


def _page_values(sources: Sources, edition: Edition) -> dict[str, Any]:
    set_language(edition.language)
    made = {name: make() for name, make in widgets().items()}
    return {
        "language": edition.language,
        "parts": edition.parts,
        "lessons": _lessons(sources.course, edition),
        "strings": edition.strings,
        "repository": sources.course.repository,
        "widgets": {name: widget.to_html() for name, widget in made.items()},  # with their states
        "num_puzzles": sum(widget.kind == "puzzle" for widget in made.values()),
        "packages": tested_packages(sources.root),
        "pythons": python_versions(sources.root),
        "notices": notices(sources.book),
        "operations": operation_values(),
        "features": feature_values(translations(sources.catalogue(edition.language))),
    }
