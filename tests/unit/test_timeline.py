"""Timelines: the order of a step, who waits for whom, in words and as pictures."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.specs.plan import Plan, data_parallel, model_parallel, replicated, spatial_parallel
from lessons.lesson_03_one_step.step import Event, Phase, Timeline, mlp_step
from tests.drawn import elements
from tests.unit.specs import meshes

PHASES = (Phase(("logits",), "hidden"), Phase(("loss",), "batch"), Phase(("update",)))


def lanes(timeline: Timeline, kind: str) -> list[str]:
    """Returns the devices of the boxes of one kind, in the order in which they are drawn."""
    return [group.get("data-device") for group in elements(timeline, "g", kind)]


# What TensorFlow 2.21 makes of the three schemes, seen in their graphs, in order.
@pytest.mark.parametrize(
    ("plan", "dims"),
    [
        (data_parallel(8), ["batch"] * 4),
        (model_parallel(4, 2), ["batch", "batch", "model", "batch", "batch"]),
        (spatial_parallel(), ["feature", "batch", "batch", "model", "batch", "batch"]),
    ],
)
def test_the_all_reduces_of_the_three_schemes_come_in_the_order_seen(plan, dims):
    assert [event.mesh_dim for event in mlp_step(plan).all_reduces] == dims


@pytest.mark.parametrize("plan", [replicated(8), data_parallel(1)])
def test_who_has_everything_waits_for_nobody(plan):
    timeline = Timeline(plan, PHASES)
    assert timeline.events == (Event(("logits", "loss", "update")),)
    assert "wait" not in timeline.picture().text
    assert lanes(timeline, "wait") == []


@given(meshes(max_devices=12), st.data())
@settings(max_examples=30, deadline=None)
def test_every_device_waits_once_in_every_all_reduce(mesh, data):
    dims = data.draw(st.lists(st.sampled_from(mesh.names), max_size=3, unique=True))
    plan = Plan("mine", mesh, {f"axis {name}": name for name in dims})
    phases = tuple(Phase((name,), f"axis {name}") for name in data.draw(st.permutations(mesh.names)))
    timeline = Timeline(plan, phases)
    names = [phase.names[0] for phase in phases]
    waiting = [name for name in names if name in dims and mesh.dim_size(name) > 1]
    assert [event.mesh_dim for event in timeline.all_reduces] == waiting
    assert sorted(lanes(timeline, "wait")) == sorted([*map(str, range(mesh.size))] * len(waiting))
    assert [name for event in timeline.events if event.mesh_dim is None for name in event.names] == names
