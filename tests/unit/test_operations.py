"""The stored table of operations, held to what two pages say of it."""

from __future__ import annotations

import pytest

from course_lib.specs.verdict import RIGHT, WRONG
from tests.course import COURSE
from tools.cases.operations import table
from tools.cases.operations.table import EAGER, EAGER_GRADIENT, NO_CASE

TABLES = table.load()
NEWEST = next(iter(TABLES.values()))
CASES = table.every_case()
LISTED = {
    "::-1]": "`[::-1]`",
    "at[0]:at[0]": "from `k` to `k + 3`",
    "dropout": "Dropout",
    "tf.random.": "random",
}
LISTED |= {f"{name}(": f"`{name}`" for name in ("tf.where", "tf.boolean_mask", "dtensor.relayout")}


def test_the_page_of_silent_mistakes_has_whatever_is_silently_wrong():
    page = (COURSE.root / "jupyter_book/pages/silent_mistakes.md").read_text(encoding="utf-8")
    wrong = {case.operation.run for case in CASES if NEWEST[case.name]["verdict"] == WRONG}
    assert wrong == {run for run in wrong if any(part in run for part in LISTED)}
    assert all(any(part in run for run in wrong) and words in page for part, words in LISTED.items())


@pytest.mark.parametrize("cure", table.DATA["cure"], ids=lambda cure: cure["of"])
def test_a_cure_is_right_wherever_what_it_replaces_is_not(cure):
    by_index = "tf.range" in cure["take"]  # an ordinary tensor of many numbers, which is refused eagerly
    left_out = (EAGER_GRADIENT, EAGER) if by_index else (EAGER_GRADIENT,)
    instead = {
        case.name: NEWEST[case.name.replace(cure["of"], cure["take"])]["verdict"]
        for case in CASES
        if case.operation.run == cure["of"] and case.way not in left_out
        if NEWEST[case.name]["verdict"] not in (RIGHT, NO_CASE)
    }
    assert set(instead.values()) == {RIGHT}, instead


def test_the_versions_differ_by_chance_alone_and_no_answer_says_where_it_ran():
    one, other = TABLES.values()
    unlike = [case for case in CASES if one[case.name]["verdict"] != other[case.name]["verdict"]]
    assert {case.operation.run for case in unlike if case.sizes != "12"} == {"x[None]", "x[:, None]"}
    messages = [answer.get("message", "") for answers in TABLES.values() for answer in answers.values()]
    assert not [message for message in messages if "/work" in message or ".py" in message or "0x" in message]
