"""The planners of `how_long` and `stages`: against each other, published runs, and the library."""

from dataclasses import fields, replace

import pytest

from course_lib.measured.files import load
from course_lib.specs.architecture import Zero
from course_lib.specs.mesh import MeshSpec
from lessons.scale.cost import MIXED, Recompute, StepCosts
from lessons.scale.networks import CLUSTERS, transformer
from lessons.scale.planner import TENSOR_PARALLEL
from lessons.scale.published import EFFICIENCY
from tests.course import from_lesson, program

checks = from_lesson("stages", "checks")
predictions = from_lesson("how_long.measured_steps", "predictions")
ten_runs = from_lesson("stages.runs", "ten_runs")


@pytest.fixture(scope="module")
def first():
    return program("how_long")


@pytest.fixture(scope="module")
def grown():
    return program("stages")


def a100(planner, share=0.52):
    links = planner.Link(240e9, 3.4e-6), planner.Link(25e9, 14e-6)
    return planner.Machine(share * 312e12, 80e9, *links)


def large(planner):
    return planner.Network(blocks=80, width=12288, heads=96)


def test_what_the_planner_learns_changes_nothing_where_it_is_switched_off(first, grown):
    network = large(grown)
    for plan in first.all_plans(network, 1536, 2304):
        same = grown.Plan(plan.data, plan.tensor, plan.examples, plan.microbatches)
        seconds = first.step_seconds(network, first.A100, plan)
        assert grown.step_seconds(network, a100(grown), same) == pytest.approx(seconds)
        assert grown.memory_held(network, same) == pytest.approx(first.memory_held(network, plan))


def priced(planner, run):
    """Returns the seconds of a step of a published run, as the lesson has them before it knows of overlap."""
    plan = planner.Plan(run.data, run.tensor, run.examples, run.microbatches, run.stages, run.chunks, "full")
    network, machine = planner.Network(run.blocks, run.width, run.heads), a100(planner)
    hidden = planner.gradient_seconds(network, machine, plan) if run.overlap else 0
    return planner.step_seconds(network, machine, plan) - hidden


def test_published_runs_are_missed_by_as_much_as_the_lesson_says(first, grown):
    found, plan = first.ranked(large(first), first.A100, first.all_plans(large(first), 1536, 2304))[0]
    assert (plan.tensor, round(found / 24.82, 2)) == (48, 1.61)
    errors = [round(100 * (priced(grown, run) / run.seconds - 1)) for run in ten_runs()]
    assert errors == [-16, -11, -3, -1, 9, 4, 12, 13, 18, 26]


@pytest.mark.parametrize("share", [0.44, 0.66])
def test_the_share_of_the_peak_does_not_change_which_plan_is_the_best(grown, share):
    network, overlapping = large(grown), []
    for plan in grown.with_chunks(network, grown.all_plans(network, 1536, 2304)):
        for recompute in ("nothing", "selective", "full"):
            overlapping += [replace(plan, recompute=recompute, zero=zero, overlap=True) for zero in (0, 1)]
    _seconds, best = grown.ranked(network, a100(grown, share), overlapping)[0]
    assert best == grown.ranked(network, a100(grown), overlapping)[0][1]
    assert (best.data, best.tensor, best.stages, best.zero) == (96, 4, 4, 1)


def test_weights_that_are_gathered_over_many_nodes_come_out_far_too_fast(grown):
    network = grown.Network(blocks=96, width=12288, heads=96)
    fsdp = grown.Plan(1536, 1, 1, 1, recompute="full", zero=3, overlap=True)
    seconds = grown.step_seconds(network, a100(grown), fsdp)
    assert seconds / 66.75 == pytest.approx(0.27, abs=0.01)
    exchange = grown.gather_seconds(network, a100(grown), replace(fsdp, overlap=False))
    assert 5 < (66.75 - seconds) / exchange < 6  # though all arithmetic came on top of it


def test_the_planner_has_about_the_times_and_the_memory_of_the_library(grown):
    network = grown.Network(blocks=40, width=6144, heads=48)
    sizes = {"sequence": grown.SEQUENCE, "features": network.width, "heads": network.heads}
    costs = StepCosts(
        transformer(network.blocks, **sizes, vocabulary=grown.VOCABULARY, dropout=True),
        {"batch": "batch", **TENSOR_PARALLEL},
    )
    cluster = replace(CLUSTERS["A100"], device=replace(CLUSTERS["A100"].device, efficiency=EFFICIENCY))
    machine, times, memories = a100(grown), [], []
    for plan in grown.with_chunks(network, grown.all_plans(network, 256, 1024))[::7]:
        for recompute, zero in (("nothing", 0), ("selective", 1), ("full", 3)):
            chosen = replace(plan, recompute=recompute, zero=zero, overlap=zero == 3)
            training = replace(
                MIXED,
                microbatches=plan.microbatches,
                chunks=plan.chunks,
                recompute={
                    "nothing": Recompute.NONE,
                    "selective": Recompute.SELECTIVE,
                    "full": Recompute.FULL,
                }[recompute],
                zero=Zero(zero),
                overlap=chosen.overlap,
            )
            mesh = MeshSpec([("stage", plan.stages), ("batch", plan.data), ("model", plan.tensor)])
            cost = costs.cost(mesh, 1024, cluster, training)
            times.append(grown.step_seconds(network, machine, chosen) / cost.seconds)
            memories.append(sum(grown.memory_held(network, chosen).values()) / cost.total_bytes)
    assert 0.8 < min(times) < max(times) < 1  # the library counts the way of tensors to memory too,
    assert 0.85 < min(memories) < max(memories) < 1  # and all tensors


def test_the_check_of_a_plan_counts_as_the_planner_does_and_takes_only_the_one_of_least_regret(grown):
    slow = replace(grown.H100, between=grown.Link(*checks.SLOW))
    worlds = {checks.FAST: grown.H100, checks.SLOW: slow}
    choices = grown.all_choices(64)
    for plan in choices[::50]:
        for between, machine in worlds.items():
            expected = pytest.approx(grown.step_seconds(grown.network, machine, plan))
            assert checks.seconds(plan, between) == expected
        assert checks.held(plan) == pytest.approx(sum(grown.memory_held(grown.network, plan).values()))
    ours = [each.name for each in fields(checks.Plan)]
    assert ours == [each.name for each in fields(grown.Plan)]
    best = {between: grown.ranked(grown.network, machine, choices)[0] for between, machine in worlds.items()}
    for between, least in checks.LEAST.items():
        assert best[between][0] == pytest.approx(least, abs=2e-4)
    regrets = sorted(checks.regret(plan) for _seconds, plan in grown.ranked(grown.network, slow, choices))
    assert regrets[0] == pytest.approx(checks.LEAST_REGRET, abs=5e-4)
    assert regrets[1] > checks.LEAST_REGRET + 1e-2
    fsdp = best[checks.FAST][1]
    assert (fsdp.data, fsdp.zero, round(checks.regret(fsdp), 2)) == (64, 3, 2.87)
    assert round(checks.regret(best[checks.SLOW][1]), 2) == 0.88


def test_steps_here_are_predicted_as_the_lesson_says():
    ratios = [seconds / each.seconds for each, seconds in predictions(load("how_long-steps").steps)]
    assert 0.895 < min(ratios) < max(ratios) < 1.165
