"""What a prediction reveals: folded on its page, until the reader chooses in its card or opens it."""

from __future__ import annotations

from html import escape

from docutils import nodes
from sphinx.application import Sphinx

_BEGIN = '<details class="revealed"><summary>{words}</summary>\n'
_END = "</details>\n"


def fold_revealed(app: Sphinx, doctree: nodes.document) -> None:
    """Puts the outputs of each cell that reveals into a `<details>`, which `assets/reveal.js` opens.

    MyST-NB folds the outputs of cells tagged `hide-output`, but labels the box in English in every language.
    """
    words = escape(app.config.book_strings["revealed"])
    for output in list(doctree.findall(_is_revealed)):
        at = output.parent.index(output)
        output.parent.insert(at + 1, nodes.raw("", _END, format="html"))
        output.parent.insert(at, nodes.raw("", _BEGIN.format(words=words), format="html"))


def _is_revealed(node: nodes.Node) -> bool:
    is_output = isinstance(node, nodes.container) and node.get("nb_element") == "cell_code_output"
    return is_output and "reveal" in node.parent["cell_metadata"].get("tags", [])
