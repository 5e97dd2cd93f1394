"""The book's own pages say the same in every language, and the Japanese keeps the course's conventions."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

BOOK = Path(__file__).resolve().parents[2] / "jupyter_book"
PAGES = sorted(path.name for path in (BOOK / "en").glob("*.md"))
JAPANESE = "[ぁ-んァ-ヶー一-龠々]"
# What must be the same, and how it looks in a page's source.
SAME = {
    "headings": r"(?m)^(#+) ",
    "links": r"\]\(([^)]+)\)",
    "code": r"(?<!`)`([^`\n]+)`(?!`)",
    "blocks": r"(?ms)^```.*?^```$",
    "templates": r"\{[{%](?! set titles| set labels).*?[%}]\}",
    "list items": r"(?m)^(- |\| )",
    "terms": r"(?m)^(: )",
}


def read(language: str, page: str) -> str:
    return (BOOK / language / page).read_text(encoding="utf-8")


def test_both_languages_have_the_same_pages():
    assert sorted(path.name for path in (BOOK / "ja").glob("*.md")) == PAGES


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("what", SAME)
def test_pages_agree(page, what):
    english, japanese = (re.findall(SAME[what], read(language, page)) for language in ("en", "ja"))
    if what in {"templates", "blocks"}:  # words inside belong to the language
        english, japanese = (
            [re.sub(r"\"[^\"]*\"|'[^']*'", "", each) for each in found] for found in (english, japanese)
        )
    if what in {"headings", "blocks"}:
        assert english == japanese
    else:
        assert Counter(english) == Counter(japanese)


def test_frame_texts_agree():
    english, japanese = (yaml.safe_load(read(language, "strings.yml")) for language in ("en", "ja"))
    assert english.keys() == japanese.keys()
    for key, text in english.items():
        unused = {"{query}"} if key == "search_some" else set()
        assert (
            set(re.findall(r"\{\w+\}", text)) - unused == set(re.findall(r"\{\w+\}", japanese[key])) - unused
        ), key


@pytest.mark.parametrize("page", [*PAGES, "strings.yml"])
@pytest.mark.parametrize(
    "pattern",
    [
        rf"{JAPANESE} [A-Za-z0-9`]",  # no space between Latin and Japanese text
        rf"[A-Za-z0-9`)] {JAPANESE}",
        rf"{JAPANESE}[,.?!:;()]",  # full-width punctuation
        rf"[,?!;]{JAPANESE}",
        rf"。\*\*{JAPANESE}",  # CommonMark would not close it
        rf"{JAPANESE}\n{JAPANESE}",  # a line break inside a sentence shows as a space
    ],
)
def test_japanese_typography(page, pattern):
    text = re.sub(r"(?s)```.*?```|\{%.*?%\}|\]\([^)]*\)", "", read("ja", page))
    text = re.sub(r"\{\{.*?\}\}", "N", text)
    text = re.sub(r" *\| *", "|", text) if page != "strings.yml" else text.replace(": ", ":\n\n")
    assert re.findall(rf".*{pattern}.*", text) == []
