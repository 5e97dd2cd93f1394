"""What the book adds to Sphinx: described pictures, folded and no empty outputs, languages, our search."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
SHOWN = ("display_data", "execute_result")
_BEGIN = '<details class="{kind}"><summary>{words}</summary>\n'
_END = "</details>\n"
_SECTION = re.compile(r'<section([^>]*?) id="([^"]+)">\n(<h[1-6])')
# A cell's tag, which part of the cell it folds, and what that is called in the book's strings and style.
_FOLDED = (("reveal", "cell_code_output", "revealed"), ("known", "cell_code_source", "known_code"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the extension; the settings come from tools/book/pages.py."""
    app.add_config_value("comments_config", {}, "html")  # Jupyter Book sets it even if nothing reads it
    app.add_config_value("book_strings", {}, "html")
    app.add_config_value("book_editions", {}, "html")
    app.add_config_value("book_repository", "", "html")
    app.add_config_value("book_colab", {}, "html")
    app.add_config_value("book_places", {}, "html")
    app.connect("builder-inited", _leave_search_to_pagefind)
    app.connect("doctree-read", describe_pictures)
    app.connect("doctree-read", drop_blank_outputs)
    app.connect("doctree-read", fold)
    app.connect("doctree-read", name_terms)
    app.connect("html-collect-pages", _search_page)
    app.connect("html-page-context", _add_context)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _leave_search_to_pagefind(app: Sphinx) -> None:
    if isinstance(app.builder, StandaloneHTMLBuilder):
        app.builder.search = False


def _search_page(_app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    yield "search", {}, "search_page.html"


def _add_context(app: Sphinx, pagename: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Gives the templates the other languages' pages, the frame's texts, and the addresses of the buttons."""
    config = app.config
    # Pagefind leads to sections whose headings have a name; Sphinx names what is around them.
    context["body"] = _SECTION.sub(r'<section\1>\n\3 id="\2"', context.get("body", ""))
    context["strings"] = config.book_strings
    context["editions"] = [
        {
            "language": language,
            "name": edition["name"],
            # A page that the other language lacks leads to its landing page, not to an error.
            "page": pagename if pagename in [*edition["pages"], "search"] else "index",
        }
        for language, edition in config.book_editions.items()
    ]
    source = Path(app.env.doc2path(pagename))
    context["download"] = source.name if source.suffix == ".ipynb" else None
    context["repository"] = config.book_repository
    context["place"] = config.book_places.get(pagename)
    context["colab_url"] = config.book_colab.get(pagename)


def describe_pictures(app: Sphinx, doctree: nodes.document) -> None:
    """Gives each picture among a notebook's outputs its alternative text; a picture without one is a warning.

    The text is `metadata[mime type]["alt"]` of the output, or its `text/plain` where that says more.
    """
    source = Path(doctree["source"])
    if source.suffix != ".ipynb":
        return
    cells = json.loads(source.read_text(encoding="utf-8"))["cells"]
    for cell in doctree.findall(_are("cell_code")):
        shown = [each for each in cells[cell["cell_index"]]["outputs"] if each["output_type"] in SHOWN]
        bundles = list(cell.findall(_are("mime_bundle")))
        for output, bundle in zip(shown, bundles, strict=True):
            for choice in bundle.children:
                for image in choice.findall(nodes.image):
                    image["alt"] = _description(output, choice["mime_type"])
    del app
    for image in doctree.findall(nodes.image):
        if not image.get("alt"):
            LOGGER.warning("a picture has no alternative text", location=image)


def drop_blank_outputs(app: Sphinx, doctree: nodes.document) -> None:
    """Removes outputs in which there is nothing to see: a display that was emptied when its cell ended."""
    del app
    for bundle in list(doctree.findall(_are("mime_bundle"))):
        shown = bundle.findall(lambda node: isinstance(node, (nodes.image, nodes.raw)))
        if not bundle.astext().strip() and not any(shown):
            bundle.parent.remove(bundle)


def name_terms(app: Sphinx, doctree: nodes.document) -> None:
    """Gives each term of the glossary an address, to which the search leads."""
    if app.env.docname == "glossary":
        for number, term in enumerate(doctree.findall(nodes.term), 1):
            term["ids"].append(f"term-{number}")


def fold(app: Sphinx, doctree: nodes.document) -> None:
    """Puts what a cell revealed, and code that the reader knows, into a `<details>` each.

    MyST-NB folds cells that are tagged for it, but labels the box in English in every language.
    `assets/reveal.js` opens what is revealed.
    """
    for tag, element, kind in _FOLDED:
        begin = _BEGIN.format(kind=kind, words=escape(app.config.book_strings[kind]))
        for part in list(doctree.findall(_are(element))):
            if tag in part.parent["cell_metadata"].get("tags", []):
                at = part.parent.index(part)
                part.parent.insert(at + 1, nodes.raw("", _END, format="html"))
                part.parent.insert(at, nodes.raw("", begin, format="html"))


def _are(element: str) -> Callable[[nodes.Node], bool]:
    """Returns what finds the elements of a notebook of one kind."""
    return lambda node: isinstance(node, nodes.container) and node.get("nb_element") == element


def _description(output: dict[str, Any], mime_type: str) -> str:
    alt = output.get("metadata", {}).get(mime_type, {}).get("alt", "")
    plain = "".join(output["data"].get("text/plain", ""))
    # "<Figure size 640x480 with 1 Axes>" and its like name a class and describe nothing.
    return alt or ("" if plain.startswith("<") else _spoken(plain))


def _spoken(text: str) -> str:
    r"""Returns a text in lines as one line that can be read aloud.

    >>> _spoken("Mesh x 2: 2 devices\n\n  x=0   0\n  x=1   1")
    'Mesh x 2: 2 devices; x=0 0; x=1 1'
    """
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return " ".join(line if line[-1] in ".:;。：" else f"{line};" for line in lines).removesuffix(";")
