"""The table of operations that is stored, held against what is known of DTensor and against its own claims."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.book.operations import operation_values
from tools.operations import cases

FILES = sorted(Path(cases.__file__).parent.glob("[0-9]*.json"))
NEWEST = json.loads(FILES[-1].read_text(encoding="utf-8"))
KNOWN = [
    ("matrix", "x[::-1]", "8", ("p", "unsharded"), "function", "wrong"),
    ("matrix", "x[::-1]", "4x2", ("unsharded", "q"), "function", "right"),
    ("matrix", "v.assign(x)", "12", ("p", "unsharded"), "eager", "right"),
    ("matrix", "v.assign(dtensor.relayout(x, turned))", "8", ("p", "unsharded"), "eager", "right"),
    ("matrix", "x * tf.cast(y, tf.float64)", "4x2", ("p", "q"), "eager", "dead"),
    *((of, run, "8", ("p", *rest), "function", "refused") for of, rest in (("vector", ()), ("matrix", ("unsharded",)))
      for run in ("tf.split(x, 2)", "tf.roll(x, 1, 0)", "tf.pad(x, [[1, 1]] * len(x.shape))", "tf.tile(x, [2] * len(x.shape))")),
    *(("matrix", run, "4x2", ("p", "q"), "function", "right")
      for run in ("tf.cumsum(x, 0)", "tf.sort(x)", "tf.argmax(x, -1)", "tf.nn.softmax(x)", "tf.einsum('ab,cb->ac', x, y)")),
]  # fmt: skip


def verdict(table, of, run, sizes, layout, mode):
    layouts = cases.layouts(cases.mesh_of(sizes), len(layout))
    place = table["table"][of][run][f"{mode} {sizes}"][layouts.index(layout)]
    return "none" if place < 0 else table["answers"][place]["verdict"]


@pytest.mark.parametrize(("of", "run", "sizes", "layout", "mode", "known"), KNOWN)
def test_it_says_what_is_known(of, run, sizes, layout, mode, known):
    assert verdict(NEWEST, of, run, sizes, layout, mode) == known


@pytest.mark.parametrize("cure", cases.DATA["cure"], ids=lambda cure: cure["of"])
def test_a_cure_is_right_wherever_what_it_replaces_is_not(cure):
    found = 0
    for of in (each.of for each in cases.operations() if each.run == cure["of"]):
        for key, places in NEWEST["table"][of][cure["of"]].items():
            if key.startswith("eager gradient"):
                continue
            for place, other in zip(places, NEWEST["table"][of][cure["take"]][key], strict=True):
                if place >= 0 and NEWEST["answers"][place]["verdict"] != "right":
                    assert NEWEST["answers"][other]["verdict"] == "right", (of, key)
                    found += 1
    assert found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_case_has_its_answer_and_none_says_where_it_ran(path):
    table = json.loads(path.read_text(encoding="utf-8"))
    places = [place for runs in table["table"].values() for row in runs.values() for each in row.values() for place in each]
    assert len(places) == sum(1 for _case in cases.every_case())
    assert set(places) - {-1} == set(range(len(table["answers"])))
    assert not [each for each in table["answers"] if "/" in each.get("message", "").replace("and/or", "")]


def test_the_page_counts_every_verdict():
    for counts in operation_values()["counts"]:
        assert counts["cases"] == sum(counts[verdict] for verdict in ("right", "refused", "wrong", "dead"))
