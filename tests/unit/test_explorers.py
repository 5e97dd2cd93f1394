"""What explorers say of choices, in words: files beside this one hold it, as a screen reader gets it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from course_lib import CourseError
from course_lib.explorers import measuring
from course_lib.i18n import set_language
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.sharding import numbered_tensor
from lessons.layouts.step_explorer import StepExplorer
from lessons.scale.best_plans import SIZES, TECHNIQUES, Choice, best_plans
from lessons.scale.cost import MIXED
from lessons.scale.explorer import ScaleOutExplorer, TensorAndDataExplorer
from lessons.scale.networks import transformer
from lessons.scale.planner import transformer_plans
from lessons.scale.puzzles.puzzle_widget import Puzzle
from tests.course import from_lesson
from tests.explored import choose, pieces, press, ran_as_predicted, shown, text_of, told

FOLDER = Path(__file__).with_name("explorers")
MeshLayoutExplorer = from_lesson("mesh_and_layout.explorer", "MeshLayoutExplorer")
ProductExplorer = from_lesson("communication.product_explorer", "ProductExplorer")
RingExplorer = from_lesson("all_reduce.ring_explorer", "RingExplorer")
ring_beside_tree = from_lesson("how_long.rings_and_trees", "ring_beside_tree")
BlockExplorer = from_lesson("transformer_block.block_explorer", "BlockExplorer")
ReviewExplorer = from_lesson("save_and_serve.explorer", "ReviewExplorer")
StrategyExplorer = from_lesson("strategies.explorer", "StrategyExplorer")
ClusterExplorer = from_lesson("workers.explorer", "ClusterExplorer")
mistakes = from_lesson("workers.cluster_mistakes", "labels")
LossScalingExplorer = from_lesson("custom_training.loss_scaling_explorer", "LossScalingExplorer")
iterating = from_lesson("own_steps", "iterating_explorer")


def observe(sharding):
    """Stands in for real devices: splits on the host."""
    return sharding.split(numbered_tensor(sharding.global_shape))


def swapped(sharding):
    first, second, *others = observe(sharding)
    return [second, first, *others]


def moved(sharding):
    first, *others = observe(sharding)
    return [first + 0.5, *others]


BATCH = "batch"
ROWS_AND_COLUMNS = [("left", 0, BATCH), ("left", 1, UNSHARDED), ("right", 0, UNSHARDED), ("right", 1, BATCH)]
GRID = ("mesh", [["batch", 4], ["model", 2]])
PRESS = "press"
CHOSEN = {
    "mesh_layout-more": (MeshLayoutExplorer, [("num_dims", 3), ("num_axes", 3), ("layout", 2, "z")]),
    "mesh_layout-fewer": (MeshLayoutExplorer, [("num_dims", 1), ("num_axes", 1)]),
    "mesh_layout-too-many": (MeshLayoutExplorer, [("mesh", 0, 1, 5)]),
    "mesh_layout-no-length": (MeshLayoutExplorer, [("shape", 1, 0)]),
    "mesh_layout-too-large": (lambda: MeshLayoutExplorer(observe), [("shape", 0, 2000), ("shape", 1, 1000)]),
    "mesh_layout-real": (lambda: MeshLayoutExplorer(observe), [("layout", 1, "y"), ("shape", 1, 4), PRESS]),
    "mesh_layout-swapped": (lambda: MeshLayoutExplorer(swapped), [("num_dims", 1), PRESS]),
    "mesh_layout-moved": (lambda: MeshLayoutExplorer(moved), [("num_dims", 1), PRESS]),
    "mesh_layout-more.ja": (MeshLayoutExplorer, [("num_dims", 3), ("num_axes", 3), ("layout", 2, "z")]),
    "product-two-collectives": (ProductExplorer, ROWS_AND_COLUMNS),
    "product-read": (
        ProductExplorer,
        [*ROWS_AND_COLUMNS, ("wanted", [UNSHARDED, UNSHARDED]), ("wanted", 1, "batch"), GRID],
    ),
    "product-illegal": (lambda: ProductExplorer(ran_as_predicted), [GRID, ("right", 0, "model")]),
    "product-ran": (lambda: ProductExplorer(ran_as_predicted), [PRESS]),
    "product-ran.ja": (lambda: ProductExplorer(ran_as_predicted), [PRESS]),
    "ring-forward": (lambda: RingExplorer(num_devices=3), [("move", 1), ("move", 1)]),
    "ring-scatters": (lambda: RingExplorer(3), [("kind", "reduce-scatter")]),
    "ring-gathers": (lambda: RingExplorer(3), [("kind", "all-gather"), ("move", -1)]),
    "ring-last": (lambda: RingExplorer(num_devices=3), [("step", 4), ("move", 1)]),
    "step-model": (lambda: StepExplorer("model"), [("move", 1), ("move", 1)]),
    "step-model.ja": (lambda: StepExplorer("model"), [("move", 1), ("move", 1)]),
    "step-last": (StepExplorer, [("normalized", True), ("event", 15), ("move", 1), ("move", 1)]),
    "step-gathered": (StepExplorer, [("splits", "hidden", "batch")]),
    "step-refused": (StepExplorer, [("splits", "features", "batch")]),
    "block-forward": (BlockExplorer, [("move", 1)]),
    "reviews-typed": (lambda: ReviewExplorer(lambda _texts: [0.874]), [("review", "A fine film.")]),
    "reviews-certain": (lambda: ReviewExplorer(lambda _texts: [0.9996]), [("review", "A film.")]),
    "reviews-blank": (lambda: ReviewExplorer(swapped), [("review", "  ")]),
    "strategy-central": (StrategyExplorer, [("variables", "on the CPU")]),
    "strategy-several": (StrategyExplorer, [("variables", "on the CPU"), ("several_machines", True)]),
    "strategy-asynchronous": (StrategyExplorer, [("several_machines", True), ("synchronous", False)]),
    "strategy-refused": (StrategyExplorer, [("devices", "TPU"), ("synchronous", False)]),
    "cluster-alone": (lambda: ClusterExplorer(1, servers=0), [("chief", False)]),
    "cluster-chief": (lambda: ClusterExplorer(2, servers=0), [("evaluator", True), ("task", "evaluator 0")]),
    "cluster-servers": (lambda: ClusterExplorer(servers=0), [("chief", False), ("servers", 1)]),
    "cluster-mistaken": (ClusterExplorer, [("mistake", "port taken")]),
    "loss_scaling-empty": (lambda: LossScalingExplorer(4, 8, 5, "replica"), []),
    "loss_scaling-fewer": (lambda: LossScalingExplorer(4, 8, 7, "twice"), [("batch_size", 4)]),
    "ring_beside_trees-climbing": (ring_beside_tree, [("step", 2), ("move", 1)]),
    "ring_beside_trees-late": (ring_beside_tree, [("step", 9)]),
    "scale_out-first": (ScaleOutExplorer, []),
    "scale_out-too-large": (ScaleOutExplorer, [("network", "146"), ("devices", 8)]),
    "scale_out-everything": (lambda: ScaleOutExplorer("146", "H100", everything=True), [("devices", 4096)]),
    "scale_out-pods": (
        ScaleOutExplorer,
        [("cluster", "TPU v5e"), ("devices", 512), ("zero", True), ("links", 0.25)],
    ),
    "tensor_and_data-first": (TensorAndDataExplorer, []),
    "puzzle-unsolved": (lambda: Puzzle(2), [("columns", "y")]),
    "puzzle-illegal": (lambda: Puzzle(2), [("rows", "x")]),
    "puzzle-par": (lambda: Puzzle(2), [("rows", "y"), ("columns", "x")]),
    "puzzle-product": (lambda: Puzzle(4), [("A columns", "x"), ("B rows", "x"), ("B columns", "y")]),
    "puzzle-large": (lambda: Puzzle(11), [("mesh", 5), ("heads", "model"), ("hidden", "model")]),
    "puzzle-stages": (lambda: Puzzle(13), [("stage", 8), ("microbatches", 64)]),
    "puzzle-zero": (lambda: Puzzle(14), [("model", 2), ("zero", 3), ("microbatches", 2)]),
    "puzzle-chunks": (lambda: Puzzle(15), [("model", 8), ("stage", 8), ("microbatches", 48), ("chunks", 2)]),
    "puzzle-uneven": (lambda: Puzzle(15), [("microbatches", 24), ("stage", 16), ("chunks", 5)]),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_after_these_choices_it_says_what_its_file_says(name):
    set_language("ja" if name.endswith(".ja") else "en")
    make, choices = CHOSEN[name]
    explorer = make()
    for choice in choices:
        press(explorer) if choice == PRESS else choose(explorer, *choice)
    assert told(explorer) + "\n" == (FOLDER / f"{name}.txt").read_text("utf-8")


def test_its_sharding_follows_the_reader_and_an_illegal_one_is_refused():
    explorer = MeshLayoutExplorer()
    choose(explorer, "num_dims", 3)
    choose(explorer, "num_axes", 3)
    choose(explorer, "layout", 2, "z")
    choose(explorer, "num_dims", 1)
    sharding = explorer.sharding
    assert (str(sharding.mesh), str(sharding.layout)) == ("x 2", "[x, unsharded, unsharded]")
    choose(explorer, "shape", 1, 10**12)
    with pytest.raises(CourseError, match="Axis 1 has the length 1000000000000"):
        explorer.sharding  # noqa: B018


def test_a_device_with_the_wrong_block_is_marked_in_the_colour_of_what_it_holds():
    explorer = MeshLayoutExplorer(swapped)
    choose(explorer, "num_dims", 1)
    press(explorer)
    assert [card[1]["data-block"] for card in pieces(explorer.view, "wrong")] == ["1", "0"]
    choose(explorer, "layout", 0, UNSHARDED)
    assert list(pieces(explorer.view, "wrong")) == []
    assert shown(explorer, "verdict") == [""]


def test_a_ring_that_cannot_be_shown_is_refused():
    with pytest.raises(CourseError, match=r"1 is no number of devices for a ring.\n.*from 2 to 8"):
        RingExplorer(1)


def test_the_task_is_the_readers_choice_and_stays_as_long_as_it_is_there():
    explorer = ClusterExplorer(servers=0)
    choose(explorer, "task", "worker 2")
    choose(explorer, "chief", False)
    assert explorer.state["task"] == "worker 2"
    choose(explorer, "workers", 2)
    assert explorer.state["task"] == "worker 0"


@pytest.mark.parametrize("mistake", mistakes())
def test_a_mistake_is_shown_with_what_tensorflow_does(mistake):
    explorer = ClusterExplorer()
    choose(explorer, "mistake", mistake)
    (wrong,), (said,) = (shown(explorer, class_) for class_ in ("listing", "told"))
    assert "TensorFlow 2.21" in said
    choose(explorer, "mistake", "")
    (right,) = shown(explorer, "listing")
    assert (wrong.split() == right.split()) == (mistake == "port taken")
    assert json.loads(right)["task"] == {"type": "worker", "index": 2}


def test_what_is_switched_off_is_in_no_plan_and_no_plan_gets_faster_by_it():
    everything = Choice("146", "H100", 512, 1.0, **dict.fromkeys(TECHNIQUES, True))
    seconds = best_plans(everything)[512].plans[0].cost.seconds
    for technique in TECHNIQUES:
        best = best_plans(replace(everything, **{technique: False}))[512]
        for each in best.plans:
            used = {
                "stages": each.plan.mesh.dim_size("stage") > 1,
                "zero": each.training.zero > 0,
                "overlap": each.training.overlap,
                "recompute": each.training.recompute != "none",
            }
            assert not used[technique]
        assert best.num_fitting
        assert best.plans[0].cost.seconds >= seconds


def test_the_best_plan_of_all_ways_is_that_of_the_planner_and_slower_links_never_help():
    choice = Choice("18", "A100", 512, 1.0, **dict.fromkeys(TECHNIQUES, True))
    network = transformer(40, sequence=2048, features=6144, heads=48, vocabulary=51200)
    ranking = transformer_plans(network, 64, 512, choice.machines(), replace(MIXED, overlap=True))
    best = best_plans(choice)[64]
    assert (best.num_plans, best.num_fitting) == (len(ranking.plans), ranking.num_fitting)
    assert best.plans[0] == ranking.plans[0]
    slow, fast = (best_plans(replace(choice, links=links)) for links in (0.25, 4.0))
    for size in SIZES:
        assert slow[size].plans[0].cost.seconds >= fast[size].plans[0].cost.seconds


def test_a_press_shows_a_bar_for_each_way_to_iterate():
    explorer = iterating.IterationExplorer(lambda size: (size, [0.003, 0.002, 0.0015]))
    choose(explorer, "batch_size", 512)
    press(explorer)
    assert "loop in Python 3.0 ms, several steps in a call 2.0 ms, all steps in a call 1.5 ms" in told(
        explorer
    )


def test_each_way_gets_the_median_of_three_turns_after_one_that_compiles(monkeypatch):
    took = iter([9, 9, 9, 40, 20, 10, 60, 30, 10, 20, 80, 10])
    monkeypatch.setattr(measuring.timeit, "timeit", lambda way, number: next(took))
    measure = iterating.measuring(lambda size: [list, list, list], steps=20)
    assert measure(64) == (64, [2, 1.5, 0.5])


def test_a_page_offers_recorded_answers_and_keeps_no_review_that_was_typed():
    explorer = ReviewExplorer(lambda _texts: [0.8])
    choose(explorer, "review", "A fine film.")
    assert "A fine film." not in explorer.to_html()
    assert "0.8" not in explorer.to_html()
    page = text_of(explorer.page_tree({"review": "Boring, badly acted and far too long."}), " ")
    assert "recorded earlier by make results" in page
