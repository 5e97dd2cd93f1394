"""Which layout a variable gets by its name, and which patterns give none."""

import pytest

from course_lib import UNSHARDED, CourseError, LayoutSpec, MeshSpec
from lessons.lesson_08_keras.layout_patterns import LayoutPatterns

MESH = MeshSpec([("batch", 4), ("model", 2)])
COLUMNS, ROWS = LayoutSpec([UNSHARDED, "model"], MESH), LayoutSpec(["model", UNSHARDED], MESH)
NAMES = ["hidden.kernel", "hidden.bias", "logits.kernel", "logits.bias"]


@pytest.mark.parametrize(
    ("layouts", "name", "wanted"),
    [
        ({"hidden": COLUMNS}, "hidden.kernel", "hidden"),  # the beginning is enough
        ({"kernel": COLUMNS}, "hidden.kernel", None),  # the end is not
        ({".*kernel": COLUMNS, "logits": ROWS}, "logits.kernel", ".*kernel"),  # the first counts
        ({".*": COLUMNS, "logits.kernel": ROWS}, "logits.kernel", "logits.kernel"),  # but the name itself
        ({"hidden.kernel": COLUMNS}, "hidden_kernels", "hidden.kernel"),  # a dot stands for any character
    ],
)
def test_a_variable_gets_its_layout_from_one_pattern(layouts, name, wanted):
    assert LayoutPatterns(layouts, MESH).pattern_of(name) == wanted


def test_what_no_pattern_fits_is_whole_on_every_device():
    assert LayoutPatterns({"hidden": COLUMNS}, MESH).layout_of("logits.kernel", 2).sharding_specs == (
        UNSHARDED,
        UNSHARDED,
    )


def test_a_pattern_behind_a_wider_one_is_unmatched():
    patterns = LayoutPatterns({".*kernel": COLUMNS, "logits.*kernel": ROWS}, MESH)
    assert patterns.unmatched(NAMES) == ("logits.*kernel",)
    with pytest.raises(CourseError, match=r"'logits\.\*kernel'"):
        patterns.require_matched(NAMES)


def test_a_layout_of_another_mesh_or_number_of_axes_is_refused_by_name():
    with pytest.raises(CourseError, match="'hidden'"):
        LayoutPatterns({"hidden": LayoutSpec(["x"], MeshSpec([("x", 8)]))}, MESH)
    with pytest.raises(CourseError, match=r"(?s)'hidden\.bias'.*layouts with 1 entry"):
        LayoutPatterns({"hidden": COLUMNS}, MESH).layout_of("hidden.bias", 1)
