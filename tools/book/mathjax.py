"""MathJax, which comes in a Python package: the lock checks its hash, and no page asks a server for it."""

from __future__ import annotations

import re
from importlib.metadata import distribution
from pathlib import Path


def script() -> Path:
    """Returns the file that turns TeX into pictures, with every extension and font in it."""
    package = distribution("sphinx-mathjax-offline")
    return Path(str(package.locate_file("sphinx-mathjax-offline/static/mathjax/tex-svg-full.js")))


def version() -> str:
    """Returns the version of MathJax, as its script says; the package has a version of its own.

    Raises:
        SystemExit: the package brings another MathJax than 3; version 4 loads its fonts from elsewhere.
    """
    found = re.search(r'VERSION="(3\.[\d.]+)"', script().read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit("sphinx-mathjax-offline brings no MathJax 3: see docs/decisions/book.md.")
    return found[1]
