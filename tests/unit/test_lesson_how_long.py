"""The planners of `how_long`, `stages` and what follows: against each other, the library, steps here."""

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

memory, regrets = from_lesson("memory_and_time", "checks"), from_lesson("which_plan", "checks")
predictions = from_lesson("how_long.measured_steps", "predictions")
first, staged, grown = program("how_long"), program("stages"), program("which_plan")


def a100(planner, share=0.52):
    links = planner.Link(240e9, 3.4e-6), planner.Link(25e9, 14e-6)
    return planner.Machine(share * 312e12, 80e9, *links)


def large(planner):
    return planner.Network(blocks=80, width=12288, heads=96)


PLANS = grown.with_chunks(large(grown), grown.all_plans(large(grown), 1536, 2304))


def test_what_the_planner_learns_changes_nothing_where_it_is_switched_off():
    plans = first.all_plans(large(first), 1536, 2304)
    for before, after, choices in ((first, staged, plans), (staged, grown, staged.all_choices(1536))):
        network = large(after)
        for plan in choices:
            same = after.Plan(**vars(plan))
            seconds = before.step_seconds(network, before.A100, plan)
            assert after.step_seconds(network, a100(after), same) == pytest.approx(seconds)
            assert after.memory_held(network, same) == pytest.approx(before.memory_held(network, plan))


def test_weights_that_are_gathered_over_many_nodes_come_out_far_too_fast():
    network = grown.Network(blocks=96, width=12288, heads=96)
    fsdp = grown.Plan(1536, 1, 1, 1, recompute="full", zero=3, overlap=True)
    seconds = grown.step_seconds(network, a100(grown), fsdp)
    assert seconds / 66.75 == pytest.approx(0.27, abs=0.01)
    exchange = grown.gather_seconds(network, a100(grown), replace(fsdp, overlap=False))
    assert 5 < (66.75 - seconds) / exchange < 6  # though all arithmetic came on top of it


def test_the_planner_has_about_the_times_and_the_memory_of_the_library():
    network = grown.Network(blocks=40, width=6144, heads=48)
    sizes = {"sequence": grown.SEQUENCE, "features": network.width, "heads": network.heads}
    costs = StepCosts(
        transformer(network.blocks, **sizes, vocabulary=grown.VOCABULARY, dropout=True),
        {"batch": "batch", **TENSOR_PARALLEL},
    )
    cluster = replace(CLUSTERS["A100"], device=replace(CLUSTERS["A100"].device, efficiency=EFFICIENCY))
    machine, times, memories = a100(grown), [], []
    for plan in grown.with_chunks(network, grown.all_plans(network, 256, 1024))[::7]:
        for recompute, how, zero in zip(("nothing", "selective", "full"), Recompute, (0, 1, 3), strict=True):
            chosen = replace(plan, recompute=recompute, zero=zero, overlap=zero == 3)
            training = replace(
                MIXED,
                microbatches=plan.microbatches,
                chunks=plan.chunks,
                recompute=how,
                zero=Zero(zero),
                overlap=chosen.overlap,
            )
            mesh = MeshSpec([("stage", plan.stages), ("batch", plan.data), ("model", plan.tensor)])
            cost = costs.cost(mesh, 1024, cluster, training)
            times.append(grown.step_seconds(network, machine, chosen) / cost.seconds)
            memories.append(sum(grown.memory_held(network, chosen).values()) / cost.total_bytes)
    assert 0.8 < min(times) < max(times) < 1  # the library counts the way of tensors to memory too,
    assert 0.85 < min(memories) < max(memories) < 1  # and all tensors


def test_logits_that_every_stage_computes_decide_between_8_and_16_stages():
    found = grown.ranked(large(grown), a100(grown), grown.with_each(PLANS, "recompute", ["selective"]))
    (eight, _plan), (sixteen, _plan) = (next(each for each in found if each[1].stages == n) for n in (8, 16))
    assert sixteen - eight == pytest.approx(0.02, abs=5e-3)
    spread = {}  # spread over all stages, 16 would win
    for seconds, plan in found:
        logits = 6 * 12288 * grown.VOCABULARY * plan.examples * grown.SEQUENCE / plan.tensor
        turns = plan.microbatches + (plan.stages - 1) / plan.chunks
        spared = turns * logits / a100(grown).flops * (1 - 1 / plan.stages)
        spread.setdefault(plan.stages, []).append(seconds - spared)
    assert min(spread[16]) < min(spread[8]) - 0.5


def test_the_checks_count_as_the_planner_does():
    slow = replace(grown.H100, between=grown.Link(12.5e9, 14e-6))
    choices = grown.all_choices(64)
    for machine, least, at in ((grown.H100, regrets.LEAST[0], 0), (slow, regrets.LEAST[1], 1)):
        assert grown.ranked(grown.network, machine, choices)[0][0] == pytest.approx(least, abs=1e-7)
        for plan, seconds in regrets.PLANS.items():
            assert grown.step_seconds(grown.network, machine, plan) == pytest.approx(seconds[at], abs=1e-7)
    for plan, (seconds, gigabytes) in memory.PLANS.items():
        assert grown.step_seconds(large(grown), a100(grown), plan) == pytest.approx(seconds, abs=1e-7)
        assert sum(grown.memory_held(large(grown), plan).values()) == pytest.approx(1e9 * gigabytes, abs=1e3)
    assert [each.name for each in fields(regrets.Plan)] == [each.name for each in fields(grown.Plan)]


def test_a_step_of_20_seconds_needs_half_the_memory_with_all_techniques():
    every = grown.with_each(PLANS, "recompute", ["nothing", "selective", "full"])
    every = grown.with_each(grown.with_each(every, "zero", [0, 1, 3]), "overlap", [True])
    for choices, least in ((PLANS, 91.9e9), (every, 48.0e9)):
        fast = [plan for plan in choices if grown.step_seconds(large(grown), a100(grown), plan) <= 20]
        held = [sum(grown.memory_held(large(grown), plan).values()) for plan in fast]
        assert min(held) == pytest.approx(least, abs=5e7)


def test_steps_here_are_predicted_as_the_lesson_says():
    ratios = [seconds / each.seconds for each, seconds in predictions(load("how_long-steps").steps)]
    assert 0.895 < min(ratios) < max(ratios) < 1.165
