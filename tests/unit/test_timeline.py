"""Timelines: the order of a step, who waits for whom, in words and as pictures."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.specs.plan import Plan, data_parallel, model_parallel, replicated, spatial_parallel
from lessons.lesson_03_one_step.step import Event, Phase, Timeline, mlp_step
from tests.unit.specs import meshes

SVG_TAG = "{http://www.w3.org/2000/svg}"
PHASES = (Phase(("logits",), "hidden"), Phase(("loss",), "batch"), Phase(("update",)))


def lanes(timeline: Timeline, kind: str) -> list[str]:
    """Returns the devices of the boxes of one kind, in the order in which they are drawn."""
    groups = ElementTree.fromstring(timeline.picture().svg).iter(f"{SVG_TAG}g")
    return [group.get("data-device") for group in groups if group.get("class") == kind]


def check_text(timeline: Timeline, golden: str) -> None:
    assert timeline.picture().text == golden.strip("\n")


def test_a_data_parallel_step():
    check_text(
        mlp_step(data_parallel(4)),
        """
A step under the plan 'data parallel' on the mesh batch 4
From the top down: an order in which it can happen, without times.
Over batch, these wait for each other: 0 1 2 3.

  compute: x W1, mean
  all-reduce over batch: mean
  compute: variance
  all-reduce over batch: variance
  compute: n W2, gradient of shift, gradient of scale
  all-reduce over batch: gradient of shift, gradient of scale
  compute: loss, gradient of W1, gradient of b1, gradient of W2, gradient of b2
  all-reduce over batch: loss, gradient of W1, gradient of b1, gradient of W2, gradient of b2
  compute: update
""",
    )


def test_groups_of_two_mesh_dimensions():
    check_text(
        Timeline(model_parallel(2, 2), PHASES),
        """
A step under the plan 'model parallel' on the mesh batch 2 × model 2
From the top down: an order in which it can happen, without times.
Over model, these wait for each other: 0 1 / 2 3.
Over batch, these wait for each other: 0 2 / 1 3.

  compute: logits
  all-reduce over model: logits
  compute: loss
  all-reduce over batch: loss
  compute: update
""",
    )


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
