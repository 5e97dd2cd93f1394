"""Plans that cannot work, refused by name. What each plan lays out: its code, its pictures, and tests/tf."""

import pytest

from course_lib import CourseError, MeshSpec
from course_lib.specs.plan import Plan

MESH = MeshSpec([("a", 4), ("b", 2)])


def test_one_mesh_dimension_for_two_axes_of_a_tensor_is_refused_with_both():
    plan = Plan("mine", MESH, {"batch": "a", "hidden": "b", "classes": "b"})
    assert str(plan.layout(("batch", "hidden"))) == "[a, b]"
    with pytest.raises(CourseError, match=r"plan 'mine'.*\[hidden, classes\]: 'hidden' and 'classes'\."):
        plan.layout(("hidden", "classes"))


def test_a_mesh_dimension_that_does_not_exist_is_refused_at_once():
    with pytest.raises(CourseError, match="no dimension 'c'"):
        Plan("mine", MESH, {"batch": "c"})
