"""The page of features under strategies, in a real browser: filters, and a program that runs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.book.built_site import watch
from tools.cases.strategies import table

CASES = {case.name: case for case in table.every_case()}


@pytest.fixture
def features(page, address):
    """Returns the page; at the end nothing may have gone wrong or left the machine."""
    trouble = watch(page, address, levels=("error", "warning"))
    page.goto(f"{address}en/features.html", wait_until="networkidle")
    page.locator(".filters:visible").wait_for()
    yield page
    assert trouble == []


def shown(page) -> list[str]:
    return page.locator(".features tbody tr:visible td:first-child").all_inner_texts()


def test_it_is_filtered_by_words_error_text_verdict_and_strategy(features):
    assert len(shown(features)) == len(table.features())
    field = features.locator(".filters input[type=search]")
    field.fill(
        "RuntimeError: `merge_call` called while defining a new graph or a tf.function. This can often happen"
    )
    assert "SGD(0.05, gradient_accumulation_steps=2)" in shown(features)
    field.fill(
        "Trying to access resource dense/kernel/7 (defined @ /a.py) located in device GPU:1 from device"
    )
    assert {'{"jit_compile": True}'} <= {*shown(features)}
    assert len(shown(features)) < 5
    field.fill("BatchNormalization()")
    features.locator(".filters [name=verdict]").select_option("wrong")
    assert shown(features) == ["keras.layers.BatchNormalization()"]
    features.locator(".filters [name=of]").select_option("one_device")
    assert shown(features) == []


@pytest.mark.parametrize(
    "name",
    [
        "keras.layers.BatchNormalization() | mirrored_2 | keras | fit | empty",
        "keras.layers.BatchNormalization() | mirrored_2 | tf_keras | fit | full",
        "a loop with tf.reduce_mean | workers_2 | keras | fit | full",
        "float64 | mirrored_2 | keras | loop | uneven",
    ],
)
def test_a_case_that_is_chosen_shows_its_program(features, name):
    feature, *key = name.split(" | ")
    features.get_by_role("button", name=feature, exact=True).click()
    opened = features.locator(".features tr:has(pre)")
    opened.locator("select").select_option(" ".join(key))
    assert opened.locator("pre").text_content() == CASES[name].program


def test_a_link_opens_a_row_whose_program_gives_its_verdict_again(page, address, tmp_path):
    page.goto(f"{address}en/features.html#batchnormalization", wait_until="networkidle")
    opened = page.locator(".features tr:has(pre)")
    assert opened.locator("p").inner_text().startswith("silently wrong")
    program = tmp_path / "program.py"
    program.write_text(opened.locator("pre").text_content(), encoding="utf-8")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["verdict"] == "different"


def test_a_page_without_scripts_has_the_whole_table(scriptless_page, address):
    scriptless_page.goto(f"{address}en/features.html")
    assert len(shown(scriptless_page)) == len(table.features())
