"""Builds the book: one Jupyter Book for each language, put together into one site with one search index."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jinja2

from tools.book.explorers import write_tables
from tools.book.licences import mathjax, notices, write_licences
from tools.book.pages import MOVED, Edition, Sources, find_editions, stage
from tools.lesson.sources import Course

ROOT = Path(__file__).resolve().parents[2]
# Without the garbage collector, which finds little in a build and takes a quarter of its time.
JUPYTER_BOOK = "import gc; gc.disable(); from jupyter_book.cli.main import main; main()"
# What Sphinx writes and no page asks for: its inventory, source maps, logos of services that we do not use.
UNUSED = shutil.ignore_patterns("objects.inv", ".buildinfo", "*.map", "images", "locales")


def build_book(sources: Sources, work: Path, output: Path) -> None:
    """Writes the whole site; that of the last build stays until the new one is whole.

    Args:
        sources: what the book is made from.
        work: the folder for intermediate files, safe to delete.
        output: the folder of the finished site, replaced as a whole.

    Raises:
        SystemExit: a page has a warning, such as a dead link or a picture without words.
    """
    editions = find_editions(sources)
    site = work / "site"
    shutil.rmtree(site, ignore_errors=True)
    for edition in editions:  # one after the other: the library speaks one language at a time
        shutil.rmtree(work / edition.language, ignore_errors=True)
        stage(sources, editions, edition, work / edition.language / "source")
    with ThreadPoolExecutor(len(editions)) as pool:
        built = pool.map(lambda edition: _build_edition(work / edition.language), editions)
        _copy_assets(sources, site / "assets", [edition.language for edition in editions])  # takes as long
    for edition, html in zip(editions, built, strict=True):
        shutil.copytree(html, site / edition.language, ignore=UNUSED)
        _write_moved(sources, edition, site / edition.language)
    _write_page(sources, "root.html", site / "index.html", editions=editions)
    _index(site)
    shutil.rmtree(output, ignore_errors=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(site, output)


def _build_edition(work: Path) -> Path:
    """Runs Jupyter Book on the staged sources and returns the folder with the pages."""
    command = [sys.executable, "-c", JUPYTER_BOOK, "build", "-q"]
    command += ["--warningiserror", "--keep-going", "--path-output", str(work), str(work / "source")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"The book in {work} was not built.\n{done.stdout}\n{done.stderr}")
    return work / "_build" / "html"


def _copy_assets(sources: Sources, assets: Path, languages: Sequence[str]) -> None:
    shutil.copytree(sources.book / "assets", assets)
    shutil.copy(mathjax(), assets / "mathjax.js")
    shutil.copy(sources.root / "course_lib" / "widgets" / "static" / "widget.js", assets)  # draws explorers
    write_tables(languages, assets)
    write_licences(notices(sources.book), assets / "licences")


def _write_moved(sources: Sources, edition: Edition, folder: Path) -> None:
    """Writes pages at addresses that are no more, which send the reader to those that answer now."""
    titles = {topic: title for lessons in edition.parts.values() for topic, title in lessons.items()}
    for old, page in MOVED.items():
        if page in titles:
            values = {"language": edition.language, "page": page, "title": titles[page]}
            _write_page(sources, "moved.html", folder / f"{old}.html", **values)


def _write_page(sources: Sources, template: str, path: Path, **values: object) -> None:
    """Writes a page that Sphinx does not make: at the site's address, or at one that is no more."""
    loader = jinja2.FileSystemLoader(sources.book / "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    text = environment.get_template(template).render(values)
    path.write_text(text + "\n", encoding="utf-8")


def _index(site: Path) -> None:
    """Writes the search index: the extended Pagefind, which knows where Japanese words end."""
    command = [sys.executable, "-m", "pagefind", "--site", str(site), "--silent", "--keep-index-url"]
    subprocess.run([*command, "--exclude-selectors", ".headerlink, mjx-assistive-mml"], check=True)
    for unused in site.glob("pagefind/pagefind-*ui.*"):
        unused.unlink()
    entry = site / "pagefind" / "pagefind-entry.json"  # Pagefind writes its languages in any order
    entry.write_text(
        json.dumps(json.loads(entry.read_text(encoding="utf-8")), sort_keys=True), encoding="utf-8"
    )


def main() -> None:
    """Builds the site and says how to look at it."""
    course = Course.here()
    build_book(Sources(ROOT, course), ROOT / "build" / "book-work", ROOT / "build" / "book")
    print("The book is in build/book. Browsers load its scripts over http only: `make serve`, or")
    print("`python -m http.server --bind 127.0.0.1 --directory build/book 8000`, then http://127.0.0.1:8000/")


if __name__ == "__main__":
    main()
