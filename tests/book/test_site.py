"""Every page of the built site, seen in a real browser."""

from __future__ import annotations

import functools
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from axe_playwright_python.sync_playwright import Axe
from PIL import Image, ImageStat

from tests.book.built_site import SITE, pages, watch
from tests.course import COURSE

PAGES = pages() or ["en/index.html"]  # one page, so that a missing site is noticed
# What is judged with axe, which takes seconds, in each CI run: one of each kind.
OFTEN = [f"en/{name}.html" for name in ("index", "glossary", "puzzles", "results", COURSE.topics[0])]
DATA_THEME = "document.documentElement.dataset.theme"
PHONE = {"width": 390, "height": 844}
# A lesson holds thousands of coloured words of code: axe judges the contrast of the first of each kind.
ONE_WORD_OF_EACH_KIND = """
{
  const seen = new Set();
  const grounds = (element) => {
    if (!element) return "";
    const {backgroundColor, backgroundImage, opacity} = getComputedStyle(element);
    return [backgroundColor, backgroundImage, opacity, grounds(element.parentElement)].join("|");
  };
  for (const word of document.querySelectorAll(".highlight span:not(:has(*))")) {
    const {color, fontSize, fontWeight} = getComputedStyle(word);
    const judged = /[\\p{L}\\p{N}]{2}/u.test(word.textContent);  // axe does not judge single characters
    const kind = [color, fontSize, fontWeight, judged, word.checkVisibility(), grounds(word)].join("|");
    word.toggleAttribute("data-again", seen.has(kind));
    seen.add(kind);
  }
  axe.configure({rules: [{id: "color-contrast", selector: "*:not([data-again])"}]});
}
"""
# What an output or a formula has beyond the edge of its frame.
CUT = """(wide) => [...document.querySelectorAll(wide)]
  .filter((frame) => frame.scrollWidth > frame.clientWidth + 1)
  .map((frame) => frame.textContent.slice(0, 80))"""


class Anchors(HTMLParser):
    """Collects the addresses that a page points to, and the ids that can be pointed at."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: set[str | None] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, _tag, attrs):
        values = dict(attrs)
        self.ids.add(values.get("id"))
        self.targets += [values[key] for key in ("href", "src") if values.get(key)]


anchors = functools.cache(Anchors)


def violations(page, *rules: str) -> list[str]:
    """Returns what axe calls serious or critical, with the elements; of the rules named, or all."""
    # Without preload: axe asks for imported style sheets at wrong addresses, which `watch` would report.
    options: dict = {"resultTypes": ["violations"], "preload": False}
    if rules:
        options["runOnly"] = list(rules)
    return [
        f"{each['id']}: {node['html'][:160]}"
        for each in Axe(AXE_SCRIPT + ONE_WORD_OF_EACH_KIND).run(page, options=options).response["violations"]
        if each["impact"] in {"serious", "critical"}
        for node in each["nodes"]
    ]


def choose_theme(page, theme: str) -> None:
    """Presses the button for the colours until the page has them."""
    for _press in range(3):
        if page.evaluate(DATA_THEME) == theme and page.evaluate("localStorage.mode") == theme:
            break
        page.locator(".theme-switch-button").click()
    assert page.evaluate(DATA_THEME) == theme


@pytest.mark.parametrize("path", PAGES)
def test_page(page, address, path):
    trouble = watch(page, address)
    page.goto(address + path, wait_until="networkidle")
    assert page.evaluate("document.documentElement.lang") == path.split("/")[0]
    assert page.evaluate("[...document.images].every((image) => image.hasAttribute('alt'))")
    assert page.evaluate("[...document.querySelectorAll('article img')].every((image) => image.alt)")
    assert page.locator("mjx-merror").count() == 0
    page.set_viewport_size({"width": 1200, "height": 900})  # with both sidebars, the narrowest column
    assert page.evaluate(CUT, ".text_html:has(> table)") == []
    page.set_viewport_size(PHONE)
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.evaluate(CUT, "mjx-container[display]") == []
    assert trouble == []


@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=() if path in OFTEN else pytest.mark.drill_all) for path in PAGES]
)
def test_page_is_accessible_in_every_colour(page, address, path):
    page.goto(address + path, wait_until="networkidle")
    for theme, rules in [("light", ()), ("dark", ("color-contrast",))]:  # only colours differ in the dark
        choose_theme(page, theme)
        page.mouse.move(0, 0)
        page.wait_for_timeout(300)  # colours fade over
        assert violations(page, *rules) == [], theme


@pytest.mark.parametrize(
    ("language", "width", "told"),
    [("en", 1200, "predictions made: 1 of 3"), ("ja", PHONE["width"], "")],
)
def test_home_page_shows_what_the_reader_predicted_and_is_accessible_then(
    page, address, language, width, told
):
    page.goto(f"{address}{language}/faster.html", wait_until="networkidle")
    page.locator("course-prediction .choice input").first.dispatch_event("click")
    page.locator("course-prediction [data-predicted]").first.wait_for()
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{address}{language}/index.html", wait_until="networkidle")
    (progress,) = [each for each in page.locator("[data-progress]").all_inner_texts() if each]
    assert told in progress
    for theme in ("light", "dark"):
        choose_theme(page, theme)
        page.mouse.move(0, 0)
        page.wait_for_timeout(300)
        assert violations(page) == [], theme


def test_pictures_are_dark_in_the_dark_theme(page, address):
    page.goto(f"{address}en/{COURSE.topics[0]}.html", wait_until="networkidle")
    choose_theme(page, "dark")
    for picture in (page.locator(".cell_output img").first, page.locator("course-explorer .flow").first):
        pixels = Image.open(io.BytesIO(picture.screenshot())).convert("L")
        assert ImageStat.Stat(pixels).median[0] < 64


def test_lesson_says_where_it_stands_and_what_comes_next(page, address):
    page.goto(f"{address}en/faster.html")
    assert re.fullmatch(
        r"Lesson 7 of \d+ · Layouts \(DTensor\) · \d+ minutes"
        " · can be skipped on the way I want to understand, I have a Keras model",
        page.locator(".place").inner_text(),
    )
    assert page.locator(".ways li").all_inner_texts() == [
        "I want to understand: 8. Splitting the model",
        "I have a Keras model: 15. Strategies",
    ]


@pytest.mark.parametrize("path", PAGES)
def test_links_resolve_and_lead_to_the_other_languages(address, path):
    for target in set(anchors(SITE / path).targets):
        if re.match(r"(https?|mailto|data|javascript):", target):
            continue
        file, fragment = urldefrag(urljoin(f"/{path}", target))
        found = SITE / unquote(file).lstrip("/").split("?")[0]
        assert found.is_file(), target
        if fragment and found.suffix == ".html":
            assert unquote(fragment) in anchors(found).ids | {"top"}, target
    language, name = path.split("/")
    text = (SITE / path).read_text(encoding="utf-8")
    twins = dict(re.findall(r'data-twin lang="(\w+)"[^>]* href="([^"]+)"', text))
    assert {language, *twins} == {page.split("/")[0] for page in PAGES}
    assert language not in twins
    for other, target in twins.items():
        assert urljoin(f"/{path}", target) == f"/{other}/{name}"


@pytest.mark.parametrize("path", ["ja/index.html", "en/mesh_and_layout.html"])
def test_explorer_answers_a_click_without_a_kernel(page, address, path):
    page.goto(address + path, wait_until="networkidle")
    explorer = page.locator("course-explorer .explorer").first
    before = explorer.inner_text()
    explorer.locator("input[type=radio]:not(:checked)").first.dispatch_event("click")
    page.locator("course-explorer .explorer:not(.busy)").first.wait_for()
    assert explorer.inner_text() != before


@pytest.mark.parametrize(("locale", "language"), [("ja-JP", "ja"), ("en-GB", "en"), ("qaa", "en")])
def test_root_leads_to_the_readers_language(chromium, address, locale, language):
    context = chromium.new_context(locale=locale)
    page = context.new_page()
    page.goto(address, wait_until="networkidle")
    assert page.url == f"{address}{language}/index.html"
    context.close()


def test_the_address_of_a_lesson_that_was_split_leads_to_the_first_part(page, address):
    page.goto(f"{address}ja/clients_and_servers.html")
    page.wait_for_url("**/ja/parameter_servers.html")


def test_root_offers_every_language_without_scripts(scriptless_page, address):
    scriptless_page.goto(address)
    offered = {link.get_attribute("href") for link in scriptless_page.get_by_role("link").all()}
    assert offered == {path for path in PAGES if path.endswith("/index.html")}
    assert len(offered) > 1


def test_code_can_be_copied(chromium, address):
    context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(address + "en/index.html", wait_until="networkidle")
    page.get_by_role("button", name="Copy", exact=True).first.click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "make lab"
    context.close()
