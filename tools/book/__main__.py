"""Builds the book: one Jupyter Book for each language, put together into one site with one search index."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import jinja2

from tools.book import mathjax
from tools.book.explorers import write_explorer_tables
from tools.book.licences import notices, write_licences
from tools.book.pages import Edition, Sources, find_editions, stage

ROOT = Path(__file__).resolve().parents[2]
# Without the garbage collector, which finds little in a build and takes a quarter of its time.
JUPYTER_BOOK = "import gc; gc.disable(); from jupyter_book.cli.main import main; main()"
# What Sphinx writes and no page asks for: its inventory, source maps, logos of services that we do not use.
UNUSED = ("objects.inv", ".buildinfo", "**/*.map", "_static/images", "_static/locales", "_static/*.png")


@dataclass(frozen=True)
class Folders:
    """Where a build reads and writes.

    Attributes:
        sources: what the book is made from.
        work: intermediate files, safe to delete.
        output: the finished site, replaced as a whole.
    """

    sources: Sources
    work: Path
    output: Path


def build_book(folders: Folders) -> None:
    """Writes the whole site to `folders.output`; the site of the last build stays until the new one is whole.

    Raises:
        SystemExit: a page has a warning, such as a dead link or a picture without words.
    """
    editions = find_editions(folders.sources)
    site = folders.work / "site"
    shutil.rmtree(site, ignore_errors=True)
    for edition in editions:  # one after the other: the library speaks one language at a time
        shutil.rmtree(folders.work / edition.language, ignore_errors=True)
        stage(folders.sources, editions, edition, folders.work / edition.language / "source")
    with ThreadPoolExecutor(len(editions)) as pool:
        built = list(pool.map(lambda edition: _build_edition(folders.work / edition.language), editions))
    for edition, html in zip(editions, built, strict=True):
        _remove_unused(html)
        shutil.copytree(html, site / edition.language)
    languages = [edition.language for edition in editions]
    _copy_assets(folders.sources, site / "assets", languages)
    _write_root(folders.sources, editions, site / "index.html")
    _index(site)
    shutil.rmtree(folders.output, ignore_errors=True)
    folders.output.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(site, folders.output)


def _build_edition(work: Path) -> Path:
    """Runs Jupyter Book on the staged sources and returns the folder with the pages."""
    command = [sys.executable, "-c", JUPYTER_BOOK, "build", "-q"]
    command += ["--warningiserror", "--keep-going", "--path-output", str(work), str(work / "source")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"The book in {work} was not built.\n{done.stdout}\n{done.stderr}")
    return work / "_build" / "html"


def _remove_unused(html: Path) -> None:
    for pattern in UNUSED:
        for path in sorted(html.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def _copy_assets(sources: Sources, assets: Path, languages: Sequence[str]) -> None:
    shutil.copytree(sources.book / "assets", assets)
    shutil.copy(mathjax.script(), assets / "mathjax.js")
    shutil.copy(sources.explorer_module, assets / sources.explorer_module.name)
    write_explorer_tables(languages, assets)
    write_licences(notices(sources.book), assets / "licences")


def _write_root(sources: Sources, editions: Sequence[Edition], path: Path) -> None:
    """Writes the page at the site's address, which sends the reader to a language."""
    loader = jinja2.FileSystemLoader(sources.book / "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    text = environment.get_template("root.html").render(editions=editions)
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


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    course = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["course"]
    parser = argparse.ArgumentParser(prog="python -m tools.book", description=__doc__)
    parser.add_argument("--notebooks", type=Path, default=ROOT / "notebooks", help="their folder")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "book")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "book-work")
    parser.add_argument("--repository", default=course["repository"], help="the repository's public address")
    parser.add_argument("--branch", default=course["branch"])
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Builds the site and says how to look at it."""
    chosen = _arguments(argv)
    sources = Sources(
        root=ROOT,
        notebooks=chosen.notebooks,
        repository=chosen.repository.rstrip("/"),
        branch=chosen.branch,
    )
    build_book(Folders(sources=sources, work=chosen.work, output=chosen.output))
    output = os.path.relpath(chosen.output)
    print(f"The book is in {output}. Browsers load its scripts over http only: `make serve`, or")
    print(f"`python -m http.server --bind 127.0.0.1 --directory {output} 8000`, then http://127.0.0.1:8000/")


if __name__ == "__main__":
    main()
