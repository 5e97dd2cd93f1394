"""The text of every kind of picture, as files beside this one hold it; and that each picture is sound SVG."""

from __future__ import annotations

from pathlib import Path

import pytest

from course_lib import MeshSpec
from course_lib.i18n import set_language
from course_lib.pictures import shapes
from course_lib.pictures.figures import Figure
from course_lib.specs.communication import product, relayout
from course_lib.specs.components import Comparison, Components
from course_lib.specs.explanation import Explanation
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.move import Move
from course_lib.specs.plan import Plan, data_parallel
from course_lib.specs.sharding import numbered_tensor
from lessons.layouts.scheme import Scheme
from lessons.scale.plan_bars import ladder, plans_against_memory
from lessons.strategies.global_batches import ReceivedExamples
from tests.code_choices import SPATIAL
from tests.course import from_lesson
from tests.drawn import SVG, tree

schedule = from_lesson("stages.schedules", "schedule")
exposed_exchange = from_lesson("memory_and_time.pictures", "exposed_exchange")
two_cuts = from_lesson("stages.pictures", "two_cuts")
FourCollectives = from_lesson("all_reduce.four_collectives", "FourCollectives")
two_levels = from_lesson("how_long.rings_and_trees", "two_levels")
nodes_of, step_over_time, steps_beside = from_lesson(
    "how_long.step_pictures", "nodes_of", "step_over_time", "steps_beside"
)
Alternatives = from_lesson("splitting_the_model.alternatives", "Alternatives")

FOLDER = Path(__file__).parent / "pictures"
GRID = MeshSpec([("x", 4), ("y", 2)])
CUBE = MeshSpec(zip("xyz", (2, 2, 2), strict=True))
MESH_3X2, THREE, FOUR = MeshSpec([("x", 3), ("y", 2)]), MeshSpec([("x", 3)]), MeshSpec([("batch", 4)])
ROWS, COLUMNS = LayoutSpec(["x", UNSHARDED], MESH_3X2), LayoutSpec([UNSHARDED, "x"], THREE)
SIZES = {"batch": 64, "features": 1200, "hidden": 48, "classes": 2}
HELD = [
    ("model 8", {"variables": 4.6e9, "gradients": 4.6e9, "optimizer": 28e9, "activations": 11e9}),
    ("model 4", {"variables": 9.2e9, "gradients": 9.2e9, "optimizer": 56e9, "activations": 11e9}),
]
PARAMETERS = {"x": ("batch", "features"), "W1": ("features", "hidden"), "b1": ("hidden",)}


def with_a_stranger():
    parts = numbered_tensor((6, 2)).reshape(3, 2, 2).repeat(2, axis=0)
    parts[3] += 0.5
    return Components.of(ROWS, list(parts))


def two_changed_places():
    whole = numbered_tensor((2, 3))
    return Comparison(COLUMNS.of((2, 3)), whole, [whole[:, [0]], whole[:, [2]], whole[:, [1]]])


def as_it_ran(planned):
    seen = tuple(each.as_run() for each in planned.collectives)
    return Explanation(planned, seen, planned.result.layout)


PICTURES = {
    "mesh-of-one-dimension": lambda: FOUR,
    "mesh-of-three-dimensions": lambda: CUBE,
    "sharding-hybrid": lambda: ROWS.of((6, 4), element_bytes=4),
    "sharding-of-three-axes": lambda: LayoutSpec([UNSHARDED, "z", "x"], CUBE).of((2, 4, 6)),
    "sharding-of-a-vector": lambda: LayoutSpec(["batch"], FOUR).of((1200,), element_bytes=4),
    "observed-with-a-stranger": with_a_stranger,
    "compared-components": two_changed_places,
    **dict.fromkeys(
        ("moved", "moved.ja"),
        lambda: Move(ROWS.of((6, 4)), LayoutSpec([UNSHARDED, "y"], MESH_3X2).of((6, 4))),
    ),
    "compared-relayout": lambda: as_it_ran(
        relayout(LayoutSpec([UNSHARDED, "x"], GRID).of((16, 8)), LayoutSpec(["x", "y"], GRID))
    ),
    "compared-product": lambda: as_it_ran(
        product(LayoutSpec([UNSHARDED, "x"], GRID).of((16, 8)), LayoutSpec(["x", "y"], GRID).of((8, 24)))
    ),
    "scheme-data-parallel": lambda: Scheme(data_parallel(4), {**PARAMETERS, "labels": ("batch",)}, SIZES),
    "scheme-spatial": lambda: Scheme(SPATIAL, PARAMETERS, SIZES),
    "ways-to-lay-out": lambda: Alternatives(
        "W1", PARAMETERS["W1"], SIZES, [Plan("whole", FOUR, {}), Plan("columns", FOUR, {"hidden": "batch"})]
    ),
    "four-collectives": FourCollectives,
    "two-levels": two_levels,
    "nodes": lambda: nodes_of([2, 16]),
    "step-over-time": lambda: step_over_time(0.368, 0.066, 32, 0.32),
    "steps-beside": lambda: steps_beside(
        {"planner": {"computing": 17.0, "model": 22.4, "batch": 0.47}, "published": {"whole": 24.8}}
    ),
    "schedule": lambda: schedule(4, 8),
    "schedule-interleaved": lambda: schedule(4, 8, chunks=2),
    "schedule-in-flight": lambda: schedule(4, 8, chunks=2, count_in_flight=True),
    "two-cuts": two_cuts,
    "exposed-exchange": exposed_exchange,
    "ladder": lambda: ladder([("all of it", 2.29), ("+ stages", 1.72), ("+ a mistake", 2)]),
    "plans-against-memory": lambda: plans_against_memory(HELD, 80e9),
    "received-unevenly": lambda: ReceivedExamples([[[0, 1], [2, 3]], [[4], []]]),
    "received-in-large-parts": lambda: ReceivedExamples([[range(16), [*range(16, 31), 40]]]),
    "received.ja": lambda: ReceivedExamples([[[0, 1], [0, 1]], [[2], []]]),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_says_what_its_file_says_and_is_sound(name):
    set_language("ja" if name.endswith(".ja") else "en")
    thing = PICTURES[name]()
    drawn = thing if isinstance(thing, Figure) else thing.picture()
    assert repr(drawn) + "\n" == (FOLDER / f"{name}.txt").read_text("utf-8")
    root = tree(thing)
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text == drawn.text.splitlines()[0]
    width, height = float(root.get("width")), float(root.get("height"))
    assert root.get("viewBox") == f"0 0 {shapes.number(width)} {shapes.number(height)}"
    assert width < 760
