"""The exercises of this lesson: the time of a pipeline, and a plan that nobody regrets much."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import drawn, judge
from course_lib.i18n import _


def pipeline(one: float, stages: int, microbatches: int, chunks: int) -> float:
    """Returns the time of all micro-batches, and of a bubble that chunks make smaller."""
    return (microbatches + (stages - 1) / chunks) * one


def _figures(random: np.random.Generator) -> tuple[int, int, int, int]:
    stages, chunks = int(random.integers(2, 9)), int(random.integers(2, 5))
    return 3 * int(random.integers(1, 5)), stages, stages * int(random.integers(1, 5)), chunks


@exercise("stages-pipeline", right=pipeline)
def pipeline_seconds(answer: Callable[..., float]) -> str | None:
    """The time of a step of a pipeline, interleaved or not."""
    one_chunk = drawn(lambda random: (*_figures(random)[:3], 1), count=10)
    work = _("A stage works on every micro-batch, and each of them takes it the time `one`.")
    return judge(
        answer,
        pipeline,
        [*one_chunk, *drawn(_figures, count=30)],
        misconceptions={
            lambda one, stages, microbatches, _chunks: pipeline(one, stages, microbatches, 1): _(
                "That is right for one chunk. With two chunks, the pictures show a bubble of half the size."
            ),
            lambda one, stages, microbatches, chunks: pipeline(one, stages + 1, microbatches, chunks): _(
                "Count the stages that the last one waits for: it doesn't wait for itself."
            ),
            lambda one, stages, microbatches, chunks: pipeline(one, stages + 1, microbatches - 1, chunks): _(
                "Only the bubble is divided by the chunks, and it has one stage less than there are."
            ),
            lambda one, stages, microbatches, chunks: (microbatches + stages - 1) / chunks * one: _(
                "Chunks don't make the work smaller, only the bubble."
            ),
            lambda one, stages, microbatches, chunks: (microbatches + (stages - 1) * chunks) * one: _(
                "With more chunks, the bubble gets smaller. Count the idle slots in both pictures."
            ),
            lambda one, _stages, microbatches, _chunks: microbatches * one: _("The bubble is missing."),
            lambda one, stages, microbatches, _chunks: microbatches * stages * one: work,
            lambda one, stages, microbatches, chunks: (stages - 1) / chunks * one: work,
            lambda one, stages, microbatches, chunks: 3 * pipeline(one, stages, microbatches, chunks): _(
                "`one` is already the time of all three slots, one forward and two backward."
            ),
        },
        advice=_(
            "Try it on the pictures: four stages and four micro-batches take 21 slots. With two chunks they"
            " take 33, each of them half as long."
        ),
    )


# The planner of the lesson, for one network on H100s whose links between nodes are fast or slow

BLOCKS, _WIDTH, _HEADS, _SEQUENCE, _VOCABULARY = 48, 7680, 64, 2048, 51200
DEVICES, _BATCH, _FLOPS, MEMORY, _NODE = 64, 1024, 0.52 * 989e12, 80e9, 8
_INSIDE, FAST, SLOW = (371e9, 3.4e-6), (50e9, 14e-6), (12.5e9, 14e-6)
LEAST = {FAST: 14.0644, SLOW: 15.4594}  # seconds of the best plan
LEAST_REGRET = 0.7806  # seconds

_Link = tuple[float, float]  # bytes a second, and seconds


@dataclass
class Plan:
    """What the lesson's own class has."""

    data: int
    tensor: int
    examples: int
    microbatches: int
    stages: int = 1
    chunks: int = 1
    recompute: str = "nothing"
    zero: int = 0
    overlap: bool = False


def _all_reduce(devices: int, room: int, num_bytes: float, between: _Link) -> float:
    per_node = math.gcd(devices, room)
    nodes, piece = devices // per_node, num_bytes / per_node
    ring = 2 * (nodes - 1) * (between[1] + piece / nodes / between[0])
    tree = 2 * math.log2(nodes) * between[1] + 2 * piece / between[0]
    return 2 * (per_node - 1) * (_INSIDE[1] + num_bytes / per_node / _INSIDE[0]) + min(ring, tree)


def _parameters(plan: Plan) -> float:
    return (12 * _WIDTH**2 * BLOCKS / plan.stages + _WIDTH * _VOCABULARY) / plan.tensor


def seconds(plan: Plan, between: _Link) -> float:
    """Returns how long a step takes with these links between nodes."""
    blocks, tokens = BLOCKS / plan.stages, plan.examples * _SEQUENCE
    products, attention = 24 * tokens * _WIDTH**2, 4 * tokens * _SEQUENCE * _WIDTH
    computed = (
        3 * (blocks * (products + attention) + 2 * tokens * _WIDTH * _VOCABULARY) / plan.tensor / _FLOPS
    )
    repeated = {"nothing": 0, "selective": attention, "full": products + attention}[plan.recompute]
    again = repeated * blocks / plan.tensor / _FLOPS
    output = 2 * tokens * _WIDTH
    times = 6 if plan.recompute == "full" else 4
    one = computed + again + times * blocks * _all_reduce(plan.tensor, _NODE, output, between)
    if plan.stages > 1:
        one += 2 * plan.chunks * (between[1] + output / plan.tensor / between[0])
    exchange = _all_reduce(plan.data, max(_NODE // plan.tensor, 1), 2 * _parameters(plan), between)
    hidden = computed * 2 / 3 + again
    if plan.zero == 3:
        exchange, hidden = 1.5 * exchange, computed + again
    if plan.overlap:
        exchange = max(exchange / blocks, exchange - hidden)
    once = 0.0 if plan.zero == 3 else exchange
    return pipeline(one + exchange - once, plan.stages, plan.microbatches, plan.chunks) + once


def regret(plan: Plan) -> float:
    """Returns how many seconds longer than the best plan it takes, with the links that suit it less."""
    return max(seconds(plan, between) - least for between, least in LEAST.items())


def held(plan: Plan) -> float:
    """Returns the bytes that a device holds."""
    blocks, tokens, parameters = BLOCKS / plan.stages, plan.examples * _SEQUENCE, _parameters(plan)
    values = tokens * _WIDTH * (10 + 24 / plan.tensor)
    pairs = 5 * plan.examples * _SEQUENCE**2 * _HEADS / plan.tensor
    kept = {"nothing": values + pairs, "selective": values, "full": 2 * tokens * _WIDTH}[plan.recompute]
    in_flight = plan.stages + (plan.stages - 1) / plan.chunks * (plan.chunks > 1)
    activations = min(in_flight, plan.microbatches) * blocks * kept + (values + pairs - kept)
    activations += 2 * tokens * _VOCABULARY / plan.tensor
    state = 12 * parameters / (plan.data if plan.zero >= 1 else 1)
    if plan.zero == 3:
        return activations + state + 4 * parameters / plan.data + 4 * 12 * _WIDTH**2 / plan.tensor
    return activations + state + 4 * parameters


_RIGHT = Plan(16, 1, 1, 64, stages=4, chunks=3, recompute="selective", zero=1, overlap=True)


@exercise("stages-plan", right=_RIGHT)
def plan(answer: Any) -> str | None:
    """The plan that fits and is regretted least, whether links between nodes are fast or slow."""
    if not all(hasattr(answer, name) for name in vars(_RIGHT)):
        return _("Give the check a `Plan`, such as the one in a row of `ranked`.")
    return _illegal(answer) or _too_much(answer)


def _illegal(chosen: Plan) -> str | None:
    counts = chosen.data, chosen.tensor, chosen.stages, chosen.chunks, chosen.examples, chosen.microbatches
    if not all(isinstance(each, int) and each > 0 for each in counts):
        return _("All numbers of a plan but `zero` are whole and positive.")
    if chosen.data * chosen.tensor * chosen.stages != DEVICES:
        return _(
            "`data` times `tensor` times `stages` must be {count}, the number of devices.", count=DEVICES
        )
    if chosen.data * chosen.examples * chosen.microbatches != _BATCH:
        return _("`data` times `examples` times `microbatches` must be {count}, the batch.", count=_BATCH)
    if _HEADS % chosen.tensor or BLOCKS % (chosen.stages * chosen.chunks):
        return _(
            "`tensor` must divide the {heads} heads, and `stages` times `chunks` the {blocks} blocks.",
            heads=_HEADS,
            blocks=BLOCKS,
        )
    if chosen.chunks > 1 and (chosen.stages == 1 or chosen.microbatches % chosen.stages):
        return _("With chunks, there must be stages, and the micro-batches must be a multiple of them.")
    if chosen.zero not in (0, 1, 3) or chosen.recompute not in ("nothing", "selective", "full"):
        return _("Our planner knows `zero` 0, 1 and 3, and `recompute` nothing, selective and full.")
    return None


def _too_much(chosen: Plan) -> str | None:
    if held(chosen) > MEMORY:
        return _("This plan doesn't fit: a device holds {size:.0f} GB.", size=held(chosen) / 1e9)
    if regret(chosen) <= LEAST_REGRET + 1e-3:
        return None
    fast, slow = (abs(seconds(chosen, between) - least) for between, least in LEAST.items())
    hint = _(
        "It is {fast:.2f} s slower than the best plan on fast links, and {slow:.2f} s slower on slow ones.",
        fast=fast,
        slow=slow,
    )
    if min(fast, slow) < 1e-3:
        return f"{hint} " + _(
            "So it is the best plan for one kind of links. Take the larger of the two for each plan."
        )
    return f"{hint} " + _("There is a plan with a regret of {least:.2f} s.", least=LEAST_REGRET)
