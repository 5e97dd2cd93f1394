"""The tools that build the book, on the small course."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.book import built_site
from tests.book.small_book import NOTEBOOK, REPOSITORY, ROOT, sources
from tools.book import pages
from tools.book.licences import notices
from tools.lesson.sources import Course


def html(site: Path, page: str) -> str:
    return (site / page).read_text(encoding="utf-8")


def test_what_was_printed_stays_where_it_was_printed_and_an_emptied_display_leaves_nothing(site):
    page = html(site, "en/fixture.html")
    places = [page.index(words) for words in (">before\n", 'alt="one pixel"', ">after\n")]
    assert places == sorted(places)
    assert page[places[1] : places[2]].count('class="output') == 1


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_download_is_the_notebook_itself(site, small_course, language):
    page = html(site, f"{language}/fixture.html")
    (address,) = re.findall(r'href="([^"]*)" download', page)
    served = (site / language / address).read_bytes()
    assert served == small_course.notebook(language, "fixture").read_bytes()


def test_without_an_address_there_is_no_button_that_needs_one(address):
    if Course.here().repository:
        pytest.skip("this copy of the course has an address")
    for name in built_site.pages():
        text = html(built_site.SITE, name)
        assert "colab.research" not in text
        assert not re.search(r'class="page-button" href="("|https?:)', text), name


def test_with_an_address_lessons_open_in_colab(site):
    for language in ("en", "ja"):
        lesson = html(site, f"{language}/fixture.html")
        colab = "https://colab.research.google.com/github/someone/some-course/blob/main"
        assert f'href="{colab}/notebooks/{language}/{NOTEBOOK}"' in lesson
        assert f'href="{REPOSITORY}"' in html(site, f"{language}/glossary.html")
        assert "colab.research" not in html(site, f"{language}/glossary.html")


def test_nothing_of_this_machine_is_published(site):
    for path in site.rglob("*"):
        if path.suffix in {".html", ".js", ".css", ".json", ".txt", ".md", ".ipynb"}:
            assert str(ROOT) not in path.read_text(encoding="utf-8"), path


def test_each_thing_shipped_has_its_licence(site):
    listed = re.findall(r'href="\.\./assets/licences/([^"]+)"', html(site, "en/notices.html"))
    assert len(listed) == len(notices(ROOT / "jupyter_book"))
    for name in listed:
        assert len((site / "assets" / "licences" / name).read_text(encoding="utf-8")) > 500


def test_pages_follow_the_order_and_their_addresses_carry_topics_alone(tmp_path, small_course):
    editions = pages.find_editions(sources(small_course))
    (edition,) = [each for each in editions if each.language == "ja"]
    captions = [part["caption"] for part in pages.contents(edition)["parts"]]
    assert captions == ["Small", edition.strings["part_help"]]
    assert edition.pages[:3] == ["index", "fixture", "puzzles"]
    pages.stage(sources(small_course), editions, edition, tmp_path / "staged")
    assert '<a href="fixture.html">0. 半分</a>' in (tmp_path / "staged/index.md").read_text("utf-8")
