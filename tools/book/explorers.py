"""Writes what the explorers show on the book's pages, where no kernel answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from course_lib.explorers.mesh_layout import MeshLayoutExplorer
from course_lib.i18n import set_language
from course_lib.widgets.base import Explorer, table_file
from course_lib.widgets.table import explorer_table

EXPLORERS: tuple[Callable[[], Explorer], ...] = (MeshLayoutExplorer,)


def write_explorer_tables(languages: Iterable[str], folder: Path) -> None:
    """Writes the table of each explorer in each language beside the module that reads it."""
    for language in languages:
        set_language(language)
        for explorer in (make() for make in EXPLORERS):
            text = json.dumps(explorer_table(explorer), ensure_ascii=False, separators=(",", ":"))
            (folder / table_file(explorer.name, language)).write_text(text, encoding="utf-8")
