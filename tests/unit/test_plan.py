"""Plans: the layouts that follow from named axes, and every plan that cannot work, refused by name."""

import pytest

from course_lib import CourseError, MeshSpec
from course_lib.specs.plan import Plan, data_parallel
from tests.code_choices import MODEL_PARALLEL, SPATIAL

MESH = MeshSpec([("a", 4), ("b", 2)])
TENSORS = {
    "inputs": ("batch", "features"),
    "labels": ("batch",),
    "hidden_weight": ("features", "hidden"),
    "hidden_bias": ("hidden",),
    "logits_weight": ("hidden", "classes"),
    "logits_bias": ("classes",),
}


def test_each_scheme_lays_out_the_tensors_so():
    schemes = (data_parallel(8), MODEL_PARALLEL, SPATIAL)
    layouts = {tensor: tuple(str(plan.layout(axes)) for plan in schemes) for tensor, axes in TENSORS.items()}
    assert layouts == {
        "inputs": ("[batch, unsharded]", "[batch, unsharded]", "[batch, feature]"),
        "labels": ("[batch]", "[batch]", "[batch]"),
        "hidden_weight": ("[unsharded, unsharded]", "[unsharded, model]", "[feature, model]"),
        "hidden_bias": ("[unsharded]", "[model]", "[model]"),
        "logits_weight": ("[unsharded, unsharded]", "[model, unsharded]", "[model, unsharded]"),
        "logits_bias": ("[unsharded]", "[unsharded]", "[unsharded]"),
    }


@pytest.mark.parametrize(
    ("splits", "says"),
    [
        ({"batch": "a", "features": "a"}, "[batch, features]: 'batch' and 'features'."),
        ({"features": "b", "hidden": "b"}, "[features, hidden]: 'features' and 'hidden'."),
        ({"batch": "a", "hidden": "b", "classes": "b"}, "[hidden, classes]: 'hidden' and 'classes'."),
    ],
)
def test_one_mesh_dimension_for_two_axes_of_a_tensor_is_refused_with_both(splits, says):
    plan = Plan("mine", MESH, splits)
    with pytest.raises(CourseError) as caught:
        [plan.layout(axes) for axes in TENSORS.values()]
    assert caught.value.problem.startswith("In the plan 'mine' mesh dimension")
    assert caught.value.problem.endswith(says)


def test_a_mesh_dimension_that_does_not_exist_is_refused_at_once():
    with pytest.raises(CourseError, match="no dimension 'c'"):
        Plan("mine", MESH, {"batch": "c"})
