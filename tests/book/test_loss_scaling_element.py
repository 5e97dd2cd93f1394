"""The loss scaling explorer on a bare page and in a notebook: its choices, pictures, code and verdict."""

from __future__ import annotations

import pytest

from course_lib.i18n import set_language
from lessons.lesson_10_custom_training.loss_scaling_explorer import LossScalingExplorer
from tests.book.bare_page import pick, write_pages
from tools.book.explorers import write_explorer_tables

OWN = "the replica's own examples"
FOCUSED = "document.querySelector('course-explorer').shadowRoot.activeElement.parentNode.innerText"


def five_of_eight() -> LossScalingExplorer:
    """As lesson 10 shows it: losses 2 to 6, gradients 1 to 5, two, two, one and no example."""
    return LossScalingExplorer(num_replicas=4, batch_size=8, num_examples=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_explorer_tables(["ja", "en"], folder, [LossScalingExplorer])
    pages = {"en": five_of_eight().to_html(), "none": ""}
    set_language("ja")
    pages["ja"] = five_of_eight().to_html()
    set_language("en")
    write_pages(folder, pages)
    return folder


def code(page) -> str:
    return page.locator(".listing pre").inner_text()


def told(page) -> str:
    return page.locator(".told").inner_text()


def returned(page) -> list[str]:
    """Returns what the pictures say of each replica."""
    lines = page.locator(".panel [role=img]").first.get_attribute("aria-label").splitlines()
    return [line.split("  ")[-1] for line in lines if line.startswith("  replica")]


def words(page, panel: int) -> list[str]:
    """Returns the texts that are drawn in a panel; the first panel has the code."""
    return page.locator(".panel").nth(panel).locator("svg text").all_text_contents()


def test_a_division_changes_code_pictures_and_verdict_without_a_kernel(visit):
    page = visit("en")
    assert code(page) == "tf.nn.compute_average_loss(losses, global_batch_size=5)"
    assert returned(page) == ["(2 + 3) / 5 = 1", "(4 + 5) / 5 = 1.8", "6 / 5 = 1.2", "0 / 5 = 0"]
    assert told(page).startswith("✓ The sum of the replicas is the true mean, 4. The gradient is right.")
    assert not any("NaN" in text for panel in (1, 2) for text in words(page, panel))
    pick(page, "Divide by", OWN)
    assert code(page) == "tf.reduce_mean(losses)"
    assert returned(page)[:3] == ["(2 + 3) / 2 = 2.5", "(4 + 5) / 2 = 4.5", "6 / 1 = 6"]
    assert told(page) == (
        "✗ The sum is NaN: a replica without an example returned the mean over nothing."
        " The gradient is 10, 3.333 times the right one, 3."
    )
    for panel in (1, 2):
        assert any("NaN" in text for text in words(page, panel))
    pick(page, "Divide by", "batch size")
    assert code(page) == "tf.nn.compute_average_loss(losses, global_batch_size=8)"
    assert told(page).startswith("✗ The sum of the replicas is 2.5, not the true mean, 4.")


def test_a_full_batch_is_right_with_other_divisions_too(visit):
    page = visit("en")
    pick(page, "Divide by", "own examples and replicas (default of Keras 3)")
    assert told(page).startswith("✗")
    pick(page, "Examples in this batch", "8")
    assert told(page).startswith("✓ The sum of the replicas is the true mean, 5.5.")
    assert code(page) == "loss(labels, outputs)"


def test_a_smaller_batch_size_leaves_no_more_examples_than_fit(visit):
    page = visit("en")
    pick(page, "Batch size", "4")
    counts = page.locator("fieldset", has_text="Examples in this batch")
    assert counts.locator("label").all_inner_texts() == ["1", "2", "3", "4"]
    assert counts.locator("label:has(:checked)").inner_text() == "4"
    pick(page, "Replicas", "2")
    assert returned(page) == ["(2 + 3) / 4 = 1.25", "(4 + 5) / 4 = 2.25"]
