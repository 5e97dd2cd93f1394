"""What the site ships that others wrote, MathJax among it, and their licence texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import distribution, version
from pathlib import Path

import pydata_sphinx_theme


@dataclass(frozen=True)
class Notice:
    """Something that the site ships and others wrote.

    Attributes:
        name: what it is called.
        version: which version is shipped.
        licence: the licence's SPDX expression.
        text: the file that holds the licence's text.
    """

    name: str
    version: str
    licence: str
    text: Path

    @property
    def file(self) -> str:
        """The name of the licence text among the site's assets."""
        return f"{self.name.lower().replace(' ', '-')}.txt"


def notices(book: Path) -> tuple[Notice, ...]:
    """Returns what the site ships that others wrote, by name."""
    kept = book / "licences"  # texts that the Python packages leave out
    of_fonts = "CC-BY-4.0 AND OFL-1.1 AND MIT"
    shipped = [
        Notice("Bootstrap", _theme_version("bootstrap"), "MIT", kept / "bootstrap.txt"),
        Notice("Font Awesome", _theme_version("fontawesome"), of_fonts, kept / "font-awesome.txt"),
        Notice("MathJax", mathjax_version(), "Apache-2.0", kept / "mathjax.txt"),
        Notice("Pagefind", version("pagefind"), "MIT", kept / "pagefind.txt"),
        Notice("Popper", "2", "MIT", kept / "popper.txt"),
        _from_package("MyST-NB", "myst-nb", "BSD-3-Clause"),
        _from_package("Accessible Pygments", "accessible-pygments", "BSD-3-Clause"),
        _from_package("PyData Sphinx Theme", "pydata-sphinx-theme", "BSD-3-Clause"),
        _from_package("Sphinx", "sphinx", "BSD-2-Clause"),
        _from_package("Sphinx Book Theme", "sphinx-book-theme", "BSD-3-Clause"),
    ]
    return tuple(sorted(shipped, key=lambda notice: notice.name.lower()))


def mathjax() -> Path:
    """Returns the file that turns TeX into pictures, with every extension and font: no page asks a server."""
    package = distribution("sphinx-mathjax-offline")
    return Path(str(package.locate_file("sphinx-mathjax-offline/static/mathjax/tex-svg-full.js")))


def mathjax_version() -> str:
    """Returns the version of MathJax 3, as its script says; the package has a version of its own."""
    return str(re.findall(r'VERSION="(3\.[\d.]+)"', mathjax().read_text(encoding="utf-8"))[0])


def _theme_version(script: str) -> str:
    """Returns the version of a script that the theme bundles, as the script's own banner says it."""
    static = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
    banner = (static / "scripts" / f"{script}.js.LICENSE.txt").read_text(encoding="utf-8")
    return str(re.findall(r"\d+\.\d+\.\d+", banner)[0])


def _from_package(name: str, package: str, licence: str) -> Notice:
    files = distribution(package).files or []
    texts = [
        file for file in files if re.fullmatch(r"LICEN[CS]E(\.\w+)?", file.name) and ".dist-info" in str(file)
    ]
    return Notice(name, version(package), licence, Path(str(texts[0].locate())))


def write_licences(shipped: Sequence[Notice], folder: Path) -> None:
    """Writes the licence text of each notice to `folder`, and says there what it belongs to."""
    folder.mkdir()
    for notice in shipped:
        text = notice.text.read_text(encoding="utf-8")
        (folder / notice.file).write_text(f"{notice.name} {notice.version}\n\n{text}", encoding="utf-8")
