"""Every page of the built site, seen in a real browser."""

from __future__ import annotations

import functools
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from axe_playwright_python.sync_playwright import Axe

from tests.book.built_site import SITE, pages, watch
from tests.course import COURSE, lesson_with
from tests.lab.reading import EXPLORER

PAGES = pages() or ["en/index.html"]  # one page, so that a missing site is noticed
# What is judged with axe, which takes seconds, in each CI run: one of each kind.
OFTEN = [f"en/{name}.html" for name in ("index", "glossary", "puzzles", "results", COURSE.topics[0])]
DATA_THEME = "document.documentElement.dataset.theme"
PHONE = {"width": 390, "height": 844}
# Searches whose words stand on the page in this or an inflected form.
SEARCHES = {
    "en": {
        "data parallelism": "glossary",
        "restarting kernels": "troubleshooting",
        "all-reduce": "all_reduce",
    },
    "ja": {
        "データ並列": "glossary",
        "膨れ上がる": "glossary",
        "カーネルを再起動": "troubleshooting",
        "仮想デバイス": "index",
        "集団通信とは": "glossary",
        "わざとエラーを起こす": "index",
        "デバイスが分割して持つ": "mesh_and_layout",
    },
}
# What users paste or type, and the section that answers: among the first three.
SYMPTOMS = {
    "RuntimeError: `merge_call` called while defining a new graph or a tf.function": "merge-call",
    "Trying to access resource dense/kernel/replica_1/19 (defined @ /home/me/core.py:12) located in "
    "device /job:localhost/replica:0/task:0/device:GPU:1 from device /job:localhost/device:GPU:0": "jit",
    "ValueError: Attempt to convert a value (PerReplica:{ 0: 0.5 }) with an unsupported type": "per-replica",
    "RuntimeError: Collective ops must be configured at program startup": "startup",
    "AttributeError: 'ShardedVariable' object has no attribute 'handle'": "sharded-variable",
    "loss NaN several devices": "nan",
    "trains on one device only": "one-device",
    "metric too large": "metric",
    "predictions of all replicas": "gather",
    "http_proxy": "waits",
    "TF_CONFIG notebook": "waits",
    "coordinator waits evaluator": "waits",
    "You must feed a value for placeholder tensor 'cond/Placeholder' with dtype": "placeholder",
    "column of strings": "strings",
    "triplets": "own-part",
    "train_on_batch": "on-batch",
    "Could not apply FILE based sharding: the dataset only has 1 file(s), which is not enough": "one-file",
    "workers save same path": "same-path",
}
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


@pytest.mark.parametrize("path", ["ja/index.html", f"en/{lesson_with(EXPLORER)}.html"])
def test_explorer_answers_a_click_without_a_kernel(page, address, path):
    page.goto(address + path, wait_until="networkidle")
    explorer = page.locator("course-explorer .explorer").first
    before = explorer.inner_text()
    explorer.locator("input[type=radio]:not(:checked)").first.dispatch_event("click")
    page.locator("course-explorer .explorer:not(.busy)").first.wait_for()
    assert explorer.inner_text() != before


@pytest.mark.parametrize("language", SEARCHES)
def test_search_finds(page, address, language):
    trouble = watch(page, address)
    page.goto(f"{address}{language}/search.html", wait_until="networkidle")
    field, results = page.locator("#search-page-query"), page.locator("article .search-results a")
    for query, expected in SEARCHES[language].items():
        field.fill("")  # which empties the results at once
        field.fill(query)
        results.first.wait_for()
        found = [urldefrag(result.get_attribute("href")).url for result in results.all()]
        assert any(link.endswith(f"/{language}/{expected}.html") for link in found), (query, found)
        assert all(f"/{language}/" in link for link in found)
    assert trouble == []


def test_search_leads_to_the_entry_of_a_symptom(page, address):
    page.goto(f"{address}en/search.html", wait_until="networkidle")
    field, results = page.locator("#search-page-query"), page.locator("article .search-results a")
    missed = {}
    for query, expected in SYMPTOMS.items():
        field.fill("")
        field.fill(query)
        results.first.wait_for()
        found = [result.get_attribute("href") for result in results.all()][:3]
        if not any(link.endswith(f"troubleshooting.html#{expected}") for link in found):
            missed[query] = found
    assert missed == {}


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


@pytest.mark.parametrize(("locale", "language"), [("ja-JP", "ja"), ("en-GB", "en"), ("qaa", "en")])
def test_root_leads_to_the_readers_language(chromium, address, locale, language):
    context = chromium.new_context(locale=locale)
    page = context.new_page()
    page.goto(address, wait_until="networkidle")
    assert page.url == f"{address}{language}/index.html"
    context.close()


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
