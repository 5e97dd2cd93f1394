"""The product explorer on a bare page and in a notebook: its choices, its steps, its button."""

from __future__ import annotations

import pytest

from course_lib import UNSHARDED
from course_lib.specs.communication import product
from course_lib.specs.compared import Compared
from lessons.lesson_02_communication.product_explorer import ProductExplorer
from tests.book.bare_page import NOTEBOOK_HOST, answered, write_pages
from tools.book.explorers import write_explorer_tables


def observe(left, right, wanted):
    predicted = product(left, right, wanted)
    seen = tuple(each.as_run("CPU") for each in predicted.collectives)
    return Compared(predicted, seen, predicted.result.layout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_explorer_tables(["en"], folder, [ProductExplorer])
    write_pages(folder, {"sum": ProductExplorer().to_html(), "none": ""})
    return folder


def option(page, heading: str, text: str):
    return page.locator("fieldset", has_text=heading).get_by_role("radio", name=text, exact=True)


def settle(page) -> None:
    page.locator(".explorer:not(.busy)").first.wait_for()


def headings(page) -> list[str]:
    return page.locator(".explorer h3").all_inner_texts()


def test_choices_lead_to_steps_costs_and_reasons_without_a_kernel(visit):
    page = visit("sum")
    assert headings(page)[2] == "1. AB: partial sums [unsharded, unsharded] → sums"
    assert page.locator(".explorer .partial").count() == 1
    option(page, "Rows of A", "x").focus()
    page.keyboard.press("Space")
    settle(page)
    assert "The mesh dimension 'x' splits two axes." in page.locator(".refusal").inner_text()
    for heading, text in [
        ("Columns of A", "unsharded"),
        ("Rows of B", "unsharded"),
        ("Columns of B", "x"),
        ("wants it", "in a layout of its own"),
        ("Columns of AB", "x"),
    ]:
        option(page, heading, text).dispatch_event("click")
        settle(page)
    assert headings(page)[2:] == ["1. A: [x, unsharded] → [unsharded, unsharded]"]
    assert page.locator(".explorer .member").count() == 8
    assert page.locator(".told").inner_text() == "1 collective; each device sends 448 bytes."
    assert page.locator(".press").is_disabled()
    assert "needs a running notebook" in page.locator(".why").inner_text()


def test_in_a_notebook_the_button_puts_what_ran_beside_the_prediction(visit):
    page = visit("none")
    explorer = ProductExplorer(observe)
    page.evaluate(NOTEBOOK_HOST, explorer.view)
    page.locator(".press").click()
    answered(page, explorer)
    assert page.locator(".explorer .member").count() == 16
    assert "✓ TensorFlow ran what was predicted." in page.locator(".verdict").inner_text()
    option(page, "Mesh", "x 4 × y 2").dispatch_event("click")
    answered(page, explorer)
    assert page.locator(".verdict").inner_text() == ""
    assert explorer.communication.operands[0].layout.sharding_specs == (UNSHARDED, "x")
