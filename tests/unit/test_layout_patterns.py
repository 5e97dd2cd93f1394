"""Which layout a variable gets by its name, and which patterns give none."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib import UNSHARDED, CourseError, LayoutSpec, MeshSpec
from lessons.lesson_08_keras.layout_patterns import LayoutPatterns

MESH = MeshSpec([("batch", 4), ("model", 2)])
COLUMNS, ROWS = LayoutSpec([UNSHARDED, "model"], MESH), LayoutSpec(["model", UNSHARDED], MESH)
SHARED = LayoutSpec(["model"], MESH)
NAMES = {"hidden.kernel": (20, 48), "hidden.bias": (48,), "logits.kernel": (48, 2), "logits.bias": (2,)}


def patterns(**layouts):
    return LayoutPatterns(layouts, MESH)


@pytest.mark.parametrize(
    ("given", "name", "wanted"),
    [
        ({"hidden.kernel": COLUMNS}, "hidden.kernel", "hidden.kernel"),
        ({"hidden": COLUMNS}, "hidden.kernel", "hidden"),  # the beginning is enough
        ({"kernel": COLUMNS}, "hidden.kernel", None),  # the end is not
        ({".*kernel": COLUMNS}, "hidden.kernel", ".*kernel"),
        ({".*kernel": COLUMNS, "logits": ROWS}, "logits.kernel", ".*kernel"),  # the first counts
        ({"logits": ROWS, ".*kernel": COLUMNS}, "logits.kernel", "logits"),
        (
            {".*": COLUMNS, "logits.kernel": ROWS},
            "logits.kernel",
            "logits.kernel",
        ),  # the name itself goes first
        ({"hidden.kernel": COLUMNS}, "hidden_kernels", "hidden.kernel"),  # a point stands for any character
    ],
)
def test_a_variable_gets_its_layout_from_one_pattern(given, name, wanted):
    assert LayoutPatterns(given, MESH).pattern_of(name) == wanted


def test_what_no_pattern_fits_is_whole_on_every_device():
    assert patterns(hidden=COLUMNS).layout_of("logits.kernel", 2) == LayoutSpec.replicated(MESH, 2)


def test_the_shardings_of_a_model_say_the_bytes_of_each_device():
    layouts = {"hidden.kernel": COLUMNS, "hidden.bias": SHARED, "logits.kernel": ROWS}
    found = LayoutPatterns(layouts, MESH).of(NAMES)
    assert {name: sharding.bytes_per_device() for name, sharding in found.items()} == {
        "hidden.kernel": 4 * 20 * 24,
        "hidden.bias": 4 * 24,
        "logits.kernel": 4 * 24 * 2,
        "logits.bias": 4 * 2,
    }


@given(st.lists(st.sampled_from("abc"), min_size=1, unique=True), st.lists(st.text("abc", min_size=1)))
def test_a_pattern_is_unmatched_where_a_search_of_all_names_says_so(letters, names):
    given = LayoutPatterns(dict.fromkeys(letters, COLUMNS), MESH)
    firsts = {name[0] for name in names}  # each pattern is one letter: it fits what begins with it
    assert given.unmatched(names) == tuple(letter for letter in letters if letter not in firsts)


def test_a_pattern_behind_a_wider_one_is_unmatched():
    layouts = {".*kernel": COLUMNS, "logits.*kernel": ROWS}
    assert LayoutPatterns(layouts, MESH).unmatched(NAMES) == ("logits.*kernel",)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: patterns(hiden=COLUMNS).of(NAMES), "'hiden'"),
        (lambda: LayoutPatterns({"(": COLUMNS}, MESH), "'('"),
        (lambda: LayoutPatterns({3: COLUMNS}, MESH), "3"),
        (lambda: patterns(hidden=LayoutSpec(["x"], MeshSpec([("x", 8)]))), "'hidden'"),
        (lambda: patterns(hidden=["model"]), "'hidden'"),
        (lambda: patterns(hidden=COLUMNS).of(NAMES), "'hidden.bias'"),
        (lambda: LayoutPatterns({".*bias": SHARED}, MESH).of({"a.bias": (3,)}), "length 3"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(make, named):
    with pytest.raises(CourseError, match=re.escape(named)):
        make()
