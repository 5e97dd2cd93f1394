"""The pages of operations and of features under strategies, in a real browser: filters, and programs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.book.built_site import watch
from tools.book.operations import operation_values
from tools.cases.strategies import table

ROWS = {"operations": lambda: operation_values()["rows"], "features": table.features}
CASES = {case.name: case for case in table.every_case()}


@pytest.fixture
def opened(page, address):
    """Returns a function that opens a page; at the end nothing may have gone wrong or left the machine."""
    trouble = watch(page, address, levels=("error", "warning"))

    def open_page(name: str, fragment: str = ""):
        page.goto(f"{address}en/{name}.html{fragment}", wait_until="networkidle")
        page.locator(".filters:visible").wait_for()
        return page

    yield open_page
    assert trouble == []


def shown(page, name: str) -> list[str]:
    return page.locator(f".{name} tbody tr:visible td:first-child").all_inner_texts()


def test_operations_are_filtered_by_words_verdict_kind_and_split_axes(opened):
    page = opened("operations")
    page.locator(".filters input[type=search]").fill("tf.split(")
    assert {text.partition("(")[0] for text in shown(page, "operations")} == {"tf.split"}
    page.locator(".filters input[type=search]").fill("tf.split(x, 2)")
    page.locator(".filters [name=of]").select_option("matrix")
    page.locator(".filters [name=verdict]").select_option("right")
    page.locator(".filters [name=marks]").fill("□■")
    assert shown(page, "operations") == ["tf.split(x, 2)"]
    page.locator(".filters [name=marks]").fill("■□")
    assert shown(page, "operations") == []


def test_features_are_filtered_by_words_error_text_verdict_and_strategy(opened):
    page = opened("features")
    field = page.locator(".filters input[type=search]")
    field.fill(
        "RuntimeError: `merge_call` called while defining a new graph or a tf.function. This can often happen"
    )
    assert "SGD(0.05, gradient_accumulation_steps=2)" in shown(page, "features")
    field.fill(
        "Trying to access resource dense/kernel/7 (defined @ /a.py) located in device GPU:1 from device"
    )
    assert {'{"jit_compile": True}'} <= {*shown(page, "features")}
    assert len(shown(page, "features")) < 5
    field.fill("BatchNormalization()")
    page.locator(".filters [name=verdict]").select_option("wrong")
    assert shown(page, "features") == ["keras.layers.BatchNormalization()"]
    page.locator(".filters [name=of]").select_option("one_device")
    assert shown(page, "features") == []


def test_the_case_of_an_operation_shows_its_verdict_and_its_program_gives_it_again(opened, tmp_path):
    page = opened("operations")
    page.locator(".filters input[type=search]").fill("x[::-1]")
    page.locator(".filters [name=of]").select_option("matrix")
    page.get_by_role("button", name="x[::-1]", exact=True).click()
    row = page.locator(".operations tr:has(pre)")
    way, layout = row.locator("select").all()
    text = row.locator("p").inner_text
    told = [way.select_option(f"{mode} 4x2") and text() for mode in ("eager", "function")]
    assert ["Collectives: none" in each for each in told] == [False, True]  # observed in a graph alone
    way.select_option("gradient 4x2")
    layout.select_option(label="[p, q]: silently wrong")
    assert text().startswith("silently wrong")
    program = tmp_path / "program.py"
    program.write_text(row.locator("pre").inner_text(), encoding="utf-8")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("WRONG") == 8
    assert "layout ['p', 'q']" in done.stdout


def test_the_case_of_a_feature_shows_the_program_with_which_the_table_was_made(opened):
    page = opened("features")
    for name in (
        "keras.layers.BatchNormalization() | mirrored_2 | keras | fit | empty",
        "keras.layers.BatchNormalization() | mirrored_2 | tf_keras | fit | full",
        "a loop with tf.reduce_mean | workers_2 | keras | fit | full",
        "float64 | mirrored_2 | keras | loop | uneven",
    ):
        feature, *key = name.split(" | ")
        button = page.get_by_role("button", name=feature, exact=True)
        button.click()
        row = page.locator(".features tr:has(pre)")
        row.locator("select").select_option(" ".join(key))
        assert row.locator("pre").text_content() == CASES[name].program
        button.click()  # which closes the row


def test_a_link_opens_a_row(opened):
    row = opened("features", "#batchnormalization").locator(".features tr:has(pre)")
    assert row.locator("p").inner_text().startswith("silently wrong")


@pytest.mark.parametrize("name", ROWS)
def test_a_page_without_scripts_has_the_whole_table(scriptless_page, address, name):
    scriptless_page.goto(f"{address}en/{name}.html")
    assert len(shown(scriptless_page, name)) == len(ROWS[name]())
