"""What is wrong with a translation: missing, fuzzy, unlike its English, or no good text of its language."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import polib

from tools.catalogues import files
from tools.checks import language_style, translation_rules
from tools.checks.language_style import Style
from tools.lesson import markdown_blocks


def faults(folder: Path, catalogue: polib.POFile) -> Iterator[str]:
    """Yields a line about each fault of the translations in a catalogue.

    Args:
        folder: of the language's own files, where its glossary and rules of style may be.
        catalogue: the translations.
    """
    glossary, style = folder / "glossary.md", folder / "style.yml"
    terms = language_style.read_glossary(glossary) if glossary.exists() else ()
    rules = language_style.read_style(style) if style.exists() else Style()
    for entry in catalogue:
        if entry.fuzzy:
            yield f"fuzzy, the English changed: {start(entry.msgid)}"
        elif not entry.translated():
            yield f"missing: {start(entry.msgid)}"
        else:
            english = entry.msgid_plural or entry.msgid
            for translation in [*entry.msgstr_plural.values()] or [entry.msgstr]:
                wanted, found = (_texts(entry, words) for words in (english, translation))
                for fault in chain(
                    translation_rules.differences(english, translation),
                    language_style.missing_terms("\n".join(wanted), "\n".join(found), terms),
                    _no_good_texts(found, rules),
                    ["left in English"] * rules.left_out("\n".join(wanted), "\n".join(found)),
                ):
                    yield f"{fault}: {start(english)} -> {start(translation)}"


def start(text: str) -> str:
    """Returns how a text begins."""
    return repr(text if len(text) < 70 else text[:67] + "...")


def _no_good_texts(texts: list[str], style: Style) -> Iterator[str]:
    """Yields rules of a language that some texts break, and what was left in English among them."""
    for text in texts:
        yield from style.problems(text)
        if style.left_out(text, text):
            yield f"left in English, {start(text)}"


def _texts(entry: polib.POEntry, words: str) -> list[str]:
    """Returns the paragraphs, list items and so on of a cell, without fenced code; of another entry all."""
    return [block.text for block in markdown_blocks.blocks(words)] if files.is_whole_cell(entry) else [words]
