"""The words that the tools put into notebooks and READMEs, translated in `lessons/locale/*/shared.po`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path

import polib

from tools.lesson.references import WORDS

Translate = Callable[[str], str]

SOLUTION = "Solution"
OPEN_IN_COLAB = "Open this lesson in Colab"
# In the first code cell of an appendix, and so in the catalogue of each.
OTHER_KERNEL = (
    "Run `make estimator` in a terminal, then choose Kernel, Change Kernel, “TensorFlow 2.15 (Estimators)”."
)
HEADINGS = ("lesson", "what it teaches", "minutes")  # of the lessons' map in a README

ALL = (SOLUTION, OPEN_IN_COLAB, *HEADINGS, *WORDS)


def translations(*catalogues: Path) -> Translate:
    """Returns what gives the reader's text for an English one: the English where no catalogue has one."""
    there = [polib.pofile(path.read_text("utf-8")) for path in catalogues if path.exists()]
    known = {entry.msgid: entry.msgstr for entry in chain(*there) if entry.translated()}
    return lambda english: known.get(english, english)
