"""The exercise of this lesson: how much a plan is regretted, whether links turn out fast or slow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.i18n import _

# The planner of the lesson, for one network on H100s whose links between nodes are fast or slow

_BLOCKS, _WIDTH, _SEQUENCE, _VOCABULARY = 48, 7680, 2048, 51200
_FLOPS, _NODE = 0.52 * 989e12, 8
_INSIDE, FAST, SLOW = (371e9, 3.4e-6), (50e9, 14e-6), (12.5e9, 14e-6)
LEAST = {FAST: 14.06441095, SLOW: 15.45936365}  # seconds of the best plan

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
    return (12 * _WIDTH**2 * _BLOCKS / plan.stages + _WIDTH * _VOCABULARY) / plan.tensor


def seconds(plan: Plan, between: _Link) -> float:
    """Returns how long a step takes with these links between nodes."""
    blocks, tokens = _BLOCKS / plan.stages, plan.examples * _SEQUENCE
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
    turns = plan.microbatches + (plan.stages - 1) / plan.chunks
    return turns * (one + exchange - once) + once


def regret(plan: Plan) -> float:
    """Returns how many seconds longer than the best plan it takes, with the links that suit it less."""
    return max(seconds(plan, between) - least for between, least in LEAST.items())


# All fit; some lose more on fast links, others on slow ones
_PLANS = (
    Plan(64, 1, 2, 8, recompute="selective", zero=3, overlap=True),
    Plan(16, 2, 1, 64, stages=2, recompute="selective", zero=1, overlap=True),
    Plan(16, 1, 1, 64, stages=4, chunks=3, recompute="selective", zero=1, overlap=True),
    Plan(8, 2, 1, 128, stages=4, zero=1, overlap=True),
    Plan(32, 2, 4, 8, recompute="selective", zero=3, overlap=True),
    Plan(4, 2, 1, 256, stages=8, zero=1, overlap=True),
    Plan(8, 2, 1, 128, stages=4, chunks=2, recompute="full", overlap=True),
)


@exercise("which_plan-regret", right=regret)
def judged_regret(answer: Callable[..., float]) -> str | None:
    """By how many seconds a plan is slower than the best one, on the links that suit it less."""

    def fast(plan: Plan) -> float:
        return seconds(plan, FAST) - LEAST[FAST]

    def slow(plan: Plan) -> float:
        return seconds(plan, SLOW) - LEAST[SLOW]

    both = _("You don't know yet which links you'll have. Count what you lose on both kinds.")
    same_links = _("Compare the plan with the best plan on the same links: subtract what that one takes.")
    return judge(
        answer,
        regret,
        [Case((plan,)) for plan in _PLANS],
        misconceptions={
            lambda plan: min(fast(plan), slow(plan)): _(
                "That is the smaller of the two. Prepare for the links that suit the plan less."
            ),
            lambda plan: fast(plan) + slow(plan): _(
                "Your links are of one kind, so you lose only one of the two. Return the larger one."
            ),
            fast: both,
            slow: both,
            lambda plan: max(seconds(plan, FAST), seconds(plan, SLOW)): same_links,
            lambda plan: seconds(plan, SLOW) - seconds(plan, FAST): same_links,
            lambda plan: seconds(plan, SLOW) - LEAST[FAST]: same_links,
            lambda plan: max(seconds(plan, between) / least - 1 for between, least in LEAST.items()): _(
                "Count seconds: subtract the best time, and don't divide by it."
            ),
            lambda plan: -regret(plan): _("A slower plan has a larger regret: turn the subtraction round."),
            lambda plan: (regret(plan), plan): _("Return the number alone, without the plan."),
        },
        tolerance=1e-2,  # seconds may be rounded as the lesson prints them
        advice=_(
            "Try it on the two plans of the table, with the links of the lesson: the largest regret of"
            " `fast_best` is 2.87 s, and that of `slow_best` is 0.88 s."
        ),
    )
