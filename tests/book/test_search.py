"""The site's search: what users type or paste, and where it leads."""

import tomllib
from pathlib import Path
from urllib.parse import urldefrag

import pytest

from tests.book.built_site import watch

QUERIES = tomllib.loads((Path(__file__).parent / "searches.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", QUERIES["words"])
def test_what_users_type_leads_to_an_answer_among_the_first_three(page, address, language):
    trouble = watch(page, address)
    page.goto(f"{address}{language}/search.html", wait_until="networkidle")
    field, results = page.locator("#search-page-query"), page.locator("article .search-results a")
    missed = {}
    for query, answers in {**QUERIES["errors"], **QUERIES["words"][language]}.items():
        field.fill("")  # which empties the results at once
        field.fill(query)
        page.wait_for_function("document.querySelector('article .search-results a')")  # asks at every frame
        links = [result.get_attribute("href").split(f"/{language}/")[1] for result in results.all()[:3]]
        found = {name for link in links for name in (link.replace(".html", ""), link.split(".html")[0])}
        if not found & set(answers):
            missed[query] = links
    assert missed == {}
    assert trouble == []


def test_phrase_that_stands_on_a_page_leads_to_that_page_first(page, address):
    page.goto(address + "ja/glossary.html")
    sentences = page.locator("dt", has_text="DVariable").locator("+ dd").inner_text()
    phrase = sentences.split("。")[-2]  # none but the glossary says this of a DVariable
    page.goto(f"{address}ja/search.html?q={phrase}", wait_until="networkidle")
    first = page.locator("article .search-results a").first
    assert urldefrag(first.get_attribute("href")).url.endswith("/ja/glossary.html")


def test_search_works_by_keyboard_alone(page, address):
    page.goto(address + "en/glossary.html", wait_until="networkidle")
    page.keyboard.press("Control+k")
    page.keyboard.type("virtual devices")
    page.locator("#search-dialog .search-results a").first.wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: not url.endswith("/glossary.html"))


def test_search_says_when_nothing_is_found_and_follows_a_link_with_a_query(page, address):
    # Pagefind takes a word that it does not know for its longest known beginning: here there is none.
    page.goto(address + "en/search.html?q=жжжжжж", wait_until="networkidle")
    status = page.locator("article .search-status")
    status.get_by_text("жжжжжж").wait_for()
    assert page.locator("article .search-results li").count() == 0
