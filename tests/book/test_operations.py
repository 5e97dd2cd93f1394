"""The page of operations, in a real browser: filters, and the program of a case, which runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.book.built_site import watch
from tools.book.operations import operation_values


@pytest.fixture
def operations(page, address):
    """Returns the page; at the end nothing may have gone wrong or left the machine."""
    trouble = watch(page, address, levels=("error", "warning"))
    page.goto(f"{address}en/operations.html", wait_until="networkidle")
    yield page
    assert trouble == []


def shown(page) -> list[str]:
    return page.locator(".operations tbody tr:visible td:first-child").all_inner_texts()


def test_it_is_filtered_by_words_verdict_kind_and_split_axes(operations):
    assert len(shown(operations)) == len(operation_values()["rows"])
    operations.locator(".filters input[type=search]").fill("tf.split(")
    assert {text.partition("(")[0] for text in shown(operations)} == {"tf.split"}
    operations.locator(".filters input[type=search]").fill("tf.split(x, 2)")
    operations.locator(".filters [name=of]").select_option("matrix")
    operations.locator(".filters [name=verdict]").select_option("right")
    operations.locator(".filters [name=marks]").fill("□■")
    assert shown(operations) == ["tf.split(x, 2)"]
    operations.locator(".filters [name=marks]").fill("■□")
    assert shown(operations) == []


def test_a_case_that_is_chosen_shows_its_verdict_and_its_program_gives_it_again(operations, tmp_path):
    operations.locator(".filters input[type=search]").fill("x[::-1]")
    operations.locator(".filters [name=of]").select_option("matrix")
    operations.get_by_role("button", name="x[::-1]", exact=True).click()
    opened = operations.locator(".operations tr:has(pre)")
    way, layout = opened.locator("select").all()
    text = opened.locator("p").inner_text
    told = [way.select_option(f"{mode} 4x2") and text() for mode in ("eager", "function")]
    assert ["Collectives: none" in each for each in told] == [False, True]  # observed in a graph alone
    way.select_option("gradient 4x2")
    layout.select_option(label="[p, q]: silently wrong")
    assert text().startswith("silently wrong")
    program = tmp_path / "program.py"
    program.write_text(opened.locator("pre").inner_text(), encoding="utf-8")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("WRONG") == 8
    assert "layout ['p', 'q']" in done.stdout


def test_a_page_without_scripts_has_the_whole_table(scriptless_page, address):
    scriptless_page.goto(f"{address}en/operations.html")
    assert len(shown(scriptless_page)) == len(operation_values()["rows"])
