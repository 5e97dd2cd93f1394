"""Plans: the builders' layouts, and every combination that cannot work, refused by name."""

import pytest

from course_lib import UNSHARDED, CourseError, LayoutSpec, MeshSpec
from course_lib.specs.plan import NUM_AXES, Plan, data_parallel, model_parallel, replicated, spatial_parallel

MESH = MeshSpec([("a", 2), ("b", 2)])


def entries(plan: Plan) -> dict[str, str]:
    return {tensor: str(layout) for tensor, layout in plan.layouts.items()}


def layouts(**changed: tuple[str, ...]) -> dict[str, LayoutSpec]:
    specs = {tensor: (UNSHARDED,) * num_axes for tensor, num_axes in NUM_AXES.items()} | changed
    return {tensor: LayoutSpec(spec, MESH) for tensor, spec in specs.items()}


def test_data_parallel_splits_only_the_batch():
    assert entries(data_parallel(8)) == {
        "inputs": "[batch, unsharded]",
        "labels": "[batch]",
        "hidden_weight": "[unsharded, unsharded]",
        "hidden_bias": "[unsharded]",
        "logits_weight": "[unsharded, unsharded]",
        "logits_bias": "[unsharded]",
    }


def test_model_parallel_splits_the_hidden_units_too():
    assert entries(model_parallel(4, 2)) == {
        "inputs": "[batch, unsharded]",
        "labels": "[batch]",
        "hidden_weight": "[unsharded, model]",
        "hidden_bias": "[model]",
        "logits_weight": "[model, unsharded]",
        "logits_bias": "[unsharded]",
    }


def test_spatial_parallel_splits_the_features_too():
    assert entries(spatial_parallel()) == {
        "inputs": "[batch, feature]",
        "labels": "[batch]",
        "hidden_weight": "[feature, model]",
        "hidden_bias": "[model]",
        "logits_weight": "[model, unsharded]",
        "logits_bias": "[unsharded]",
    }


def test_replicated_splits_nothing():
    plan = replicated(4)
    assert str(plan.mesh) == "world 4"
    assert all(layout.replicas == 4 for layout in plan.layouts.values())


@pytest.mark.parametrize(
    ("plan", "shards"), [(data_parallel(8), 8), (replicated(8), 1), (model_parallel(4, 2), 4)]
)
def test_a_plan_knows_into_how_many_parts_it_splits_a_batch(plan, shards):
    assert plan.batch_shards == shards
    plan.require_batch(64)


@pytest.mark.parametrize(
    ("batch_size", "says"),
    [
        (60, ["A batch of 60", "8 places", "'batch'", "divide by 8", "56 or 64"]),
        (4, ["A batch of 4", "8 or 16"]),
        (0, ["0 cannot be the size"]),
        (-8, ["-8 cannot be the size"]),
        (64.0, ["64.0 cannot be the size"]),
        (True, ["True cannot be the size"]),
    ],
)
def test_a_batch_that_cannot_be_split_is_refused_with_both_numbers(batch_size, says):
    with pytest.raises(CourseError) as caught:
        data_parallel(8).require_batch(batch_size)
    assert [part for part in says if part not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (
            {"inputs": ("a", "b"), "labels": ("a",), "hidden_weight": ("a", UNSHARDED)},
            "Axis 1 of 'inputs' is 'b', and axis 0 of 'hidden_weight' is 'a'.",
        ),
        (
            {"hidden_weight": (UNSHARDED, "a"), "hidden_bias": ("a",), "logits_weight": ("b", UNSHARDED)},
            "Axis 1 of 'hidden_weight' is 'a', and axis 0 of 'logits_weight' is 'b'.",
        ),
        (
            {"hidden_weight": (UNSHARDED, "a")},
            "Axis 0 of 'hidden_bias' is 'unsharded', and axis 1 of 'hidden_weight' is 'a'.",
        ),
        (
            {"logits_weight": (UNSHARDED, "a")},
            "Axis 0 of 'logits_bias' is 'unsharded', and axis 1 of 'logits_weight' is 'a'.",
        ),
        (
            {"inputs": ("a", UNSHARDED)},
            "Axis 0 of 'labels' is 'unsharded', and axis 0 of 'inputs' is 'a'.",
        ),
        (
            {
                "inputs": ("a", UNSHARDED),
                "labels": ("a",),
                "logits_weight": (UNSHARDED, "a"),
                "logits_bias": ("a",),
            },
            "Axis 0 of 'inputs' is 'a', and axis 1 of 'logits_weight' is 'a'.",
        ),
        (
            {"hidden_bias": (UNSHARDED, UNSHARDED)},
            "The layout [unsharded, unsharded] of 'hidden_bias' has 2 axes.",
        ),
    ],
)
def test_layouts_that_cannot_meet_are_refused_with_both_axes(changed, says):
    with pytest.raises(CourseError) as caught:
        Plan("mine", MESH, layouts(**changed))
    assert caught.value.problem == says


def test_a_missing_and_an_unknown_tensor_are_named():
    missing = layouts()
    del missing["labels"]
    with pytest.raises(CourseError, match="no layout for 'labels'"):
        Plan("mine", MESH, missing)
    with pytest.raises(CourseError, match="'output' that the model lacks"):
        Plan("mine", MESH, {**layouts(), "output": LayoutSpec([UNSHARDED], MESH)})


def test_a_layout_on_another_mesh_is_refused():
    with pytest.raises(CourseError, match=f"on the mesh world 4, the plan on {MESH}"):
        Plan("mine", MESH, {**layouts(), "labels": LayoutSpec([UNSHARDED], MeshSpec([("world", 4)]))})


def test_the_layouts_of_a_plan_cannot_be_changed():
    with pytest.raises(TypeError):
        data_parallel().layouts["inputs"] = LayoutSpec([UNSHARDED, UNSHARDED], MESH)
