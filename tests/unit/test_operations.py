"""The stored table of operations, held against what is known of DTensor and against its own claims."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from course_lib.specs.verdict import RIGHT, VERDICTS
from tools.book.operations import operation_values
from tools.lesson.sources import Course
from tools.operations import cases

FILES = sorted(Path(cases.__file__).parent.glob("[0-9]*.json"))
TABLES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FILES}
NEWEST = cases.unpacked(TABLES[FILES[-1].stem])
KNOWN = {
    "matrix | x[::-1] | 8 | p,unsharded | function": "wrong",
    "matrix | x[::-1] | 4x2 | unsharded,q | function": "right",
    "matrix | x * tf.cast(y, tf.float64) | 4x2 | p,q | eager": "dead",
    "matrix | tf.split(x, 2) | 8 | p,unsharded | function": "refused",
    "matrix | tf.roll(x, 1, 0) | 8 | p,unsharded | function": "refused",
    "matrix | tf.pad(x, [[1, 1]] * len(x.shape)) | 8 | p,unsharded | function": "refused",
    "matrix | tf.tile(x, [2] * len(x.shape)) | 8 | p,unsharded | function": "refused",
    "matrix | dtensor.relayout(x, turned) | 12 | p,unsharded | function": "wrong",
    "matrix | tf.cumsum(x, 0) | 4x2 | p,q | function": "right",
    "matrix | tf.sort(x) | 4x2 | p,q | function": "right",
    "matrix | tf.argmax(x, -1) | 4x2 | p,q | function": "right",
    "matrix | tf.nn.softmax(x) | 4x2 | p,q | function": "right",
    "matrix | tf.einsum('ab,cb->ac', x, y) | 4x2 | p,q | function": "right",
}


@pytest.mark.parametrize("key", KNOWN)
def test_it_says_what_is_known(key):
    assert NEWEST[key]["verdict"] == KNOWN[key]


LISTED = {"::-1]": "`[::-1]` or", "at[0]:at[0]": "`t[k:k+3]`", "dropout": "random", "tf.random.": "random"}
LISTED |= {f"{name}(": f"`{name}`" for name in ("tf.where", "tf.boolean_mask", "dtensor.relayout")}


def test_the_first_lesson_lists_whatever_is_silently_wrong():
    lesson = (Course.here().folder("mesh_and_layout") / "lesson.py").read_text(encoding="utf-8")
    rows = "".join(line for line in lesson.splitlines() if line.startswith("# | "))
    wrong = {case.run for case in cases.every_case() if NEWEST[case.key]["verdict"] == "wrong"}
    assert wrong == {run for run in wrong if any(part in run for part in LISTED)}
    assert all(any(part in run for run in wrong) and words in rows for part, words in LISTED.items())


@pytest.mark.parametrize("cure", cases.DATA["cure"], ids=lambda cure: cure["of"])
def test_a_cure_is_right_wherever_what_it_replaces_is_not(cure):
    by_index = "tf.range" in cure["take"]  # an ordinary tensor of many numbers, which is refused eagerly
    left_out = (cases.EAGER_GRADIENT, cases.EAGER) if by_index else (cases.EAGER_GRADIENT,)
    instead = {
        case.key: NEWEST[case.key.replace(cure["of"], cure["take"])]["verdict"]
        for case in cases.every_case()
        if case.run == cure["of"] and case.mode not in left_out
        if NEWEST[case.key]["verdict"] not in (RIGHT, cases.NO_CASE)
    }
    assert set(instead.values()) == {RIGHT}, instead


def test_the_versions_differ_by_chance_alone():
    one, other = (cases.unpacked(table) for table in TABLES.values())
    unlike = [each for each in cases.every_case() if one[each.key]["verdict"] != other[each.key]["verdict"]]
    assert {case.run for case in unlike if case.sizes != "12"} == {"x[None]", "x[:, None]"}


@pytest.mark.parametrize("version", TABLES)
def test_no_answer_says_where_it_ran_and_all_are_counted(version):
    messages = [each.get("message", "") for each in TABLES[version]["answers"]]
    assert not [message for message in messages if "/work" in message or ".py" in message or "0x" in message]
    counts = next(each for each in operation_values()["counts"] if each["tensorflow"].startswith(version))
    answers = [each for each in cases.unpacked(TABLES[version]).values() if each["verdict"] != cases.NO_CASE]
    assert counts["cases"] == len(answers) == sum(counts[name] for name in VERDICTS)
