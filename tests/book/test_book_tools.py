"""The tools that build the book, on two small lessons."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.book import built_site, standin
from tests.book.standin import ROOT, sources
from tools.book import facts, pages
from tools.book.licences import notices
from tools.book.results import measured_values
from tools.lesson.sources import Course


def html(site: Path, page: str) -> str:
    return (site / page).read_text(encoding="utf-8")


def test_pictures_carry_their_own_descriptions(site):
    images = re.findall(r"<img[^>]*_images[^>]*>", html(site, "en/second.html"))
    described = [re.search(r'alt="([^"]*)"', image)[1] for image in images]
    assert described == [
        "device 0: rows 0-3; device 1: rows 4-7",
        "Loss falls from 0.7 to 0.3.",
        "a second picture",
        "between",
    ]


def test_what_was_printed_stays_where_it_was_printed_and_an_emptied_display_leaves_nothing(site):
    page = html(site, "en/first.html")
    places = [page.index(words) for words in (">before\n", 'alt="between"', ">after\n", ">what stays\n")]
    assert places == sorted(places)
    outputs = re.findall(r"<pre[^>]*>(.*?)</pre>", page[places[2] : places[3] + 100], re.S)
    assert all(re.sub("<[^>]*>", "", each).strip() for each in outputs)
    assert page[places[2] : places[3]].count('class="output') == 1


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_download_is_the_notebook_itself(site, lessons, language):
    page = html(site, f"{language}/first.html")
    (address,) = re.findall(r'href="([^"]*)" download', page)
    served = (site / language / address).read_bytes()
    assert served == (lessons / "notebooks" / language / "01_first.ipynb").read_bytes()


def test_without_an_address_there_is_no_button_that_needs_one(address):
    if Course.here().repository:
        pytest.skip("this copy of the course has an address")
    for name in built_site.pages():
        text = html(built_site.SITE, name)
        assert "colab.research" not in text
        assert not re.search(r'class="page-button" href="("|https?:)', text), name


def test_with_an_address_lessons_open_in_colab(site):
    for language in ("en", "ja"):
        lesson = html(site, f"{language}/first.html")
        colab = "https://colab.research.google.com/github/someone/some-course/blob/main"
        assert f'href="{colab}/notebooks/{language}/01_first.ipynb"' in lesson
        assert f'href="{standin.REPOSITORY}"' in html(site, f"{language}/glossary.html")
        assert "colab.research" not in html(site, f"{language}/glossary.html")


@pytest.mark.parametrize("address", ["github.com/a/b", "https://github.com/a", "https://example.org/a/b"])
def test_an_address_that_colab_cannot_open_is_refused(lessons, address):
    with pytest.raises(SystemExit, match=re.escape(address)):
        sources(lessons, address)


def test_nothing_of_this_machine_is_published(site):
    for path in site.rglob("*"):
        if path.suffix in {".html", ".js", ".css", ".json", ".txt", ".md", ".ipynb"}:
            assert str(ROOT) not in path.read_text(encoding="utf-8"), path


def test_each_thing_shipped_has_its_licence(site):
    listed = re.findall(r'href="\.\./assets/licences/([^"]+)"', html(site, "en/notices.html"))
    assert len(listed) == len(notices(ROOT / "jupyter_book"))
    for name in listed:
        assert len((site / "assets" / "licences" / name).read_text(encoding="utf-8")) > 500


def test_results_are_drawn_and_tabled_in_each_language(tmp_path):
    for language in ("en", "ja"):
        values = measured_values(language, tmp_path)
        runs = values["measured"]["a_run-imdb"].runs
        assert values["epochs_of"](runs.ours)[-1]["test_accuracy"] == "0.857–0.859"
        titles = {name: f"<{name}>" for name in runs}
        assert values["curves"]("imdb", runs, titles).startswith("```{image} imdb.png\n:alt: ")
        assert (tmp_path / "imdb.png").read_bytes().startswith(b"\x89PNG")
        assert any("<wbr>" in title for title in values["strategies"]["rows"])


def test_pages_follow_the_order_and_their_addresses_carry_topics_alone(tmp_path, lessons):
    course = Course(lessons)
    editions = pages.find_editions(sources(course.root))
    (edition,) = [each for each in editions if each.language == "ja"]
    captions = [part["caption"] for part in pages.contents(edition)["parts"]]
    assert captions == ["Small", edition.strings["part_help"]]
    assert edition.pages[:3] == ["index", "first", "second"]
    pages.stage(sources(course.root), editions, edition, tmp_path / "staged")
    assert f"[{standin.TITLES['ja'][0]}](first.ipynb)" in (tmp_path / "staged/index.md").read_text("utf-8")


def test_quoted_versions_come_from_the_lock_and_the_workflow():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    packages = {package.name: package for package in facts.tested_packages(ROOT)}
    assert f"tensorflow=={packages['tensorflow'].tested}" in lock
    assert packages["tensorflow"].allowed == ">=2.20,<2.22"
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    assert list(facts.python_versions(ROOT)) == workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
