"""The exercise of this lesson: how much a plan is regretted, whether links turn out fast or slow."""

from __future__ import annotations

from collections.abc import Callable

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.i18n import _
from lessons.scale.plans import Plan

# Seconds of a step of the lesson's network on its H100s, with fast links between nodes and with slow ones
LEAST = 14.06441095, 15.45936365  # of the best plan
PLANS = {
    Plan(64, 1, 2, 8, recompute="selective", zero=3, overlap=True): (14.06441095, 18.32770878),
    Plan(16, 2, 1, 64, stages=2, recompute="selective", zero=1, overlap=True): (14.94562695, 15.45936365),
    Plan(16, 1, 1, 64, stages=4, chunks=3, recompute="selective", zero=1, overlap=True): (
        14.84497731,
        15.68145198,
    ),
    Plan(8, 2, 1, 128, stages=4, zero=1, overlap=True): (15.16741724, 15.54789771),
    Plan(32, 2, 4, 8, recompute="selective", zero=3, overlap=True): (14.54948504, 16.63557286),
    Plan(4, 2, 1, 256, stages=8, zero=1, overlap=True): (15.92587024, 16.42226612),
    Plan(8, 2, 1, 128, stages=4, chunks=2, recompute="full", overlap=True): (19.93836648, 20.52511236),
}


def regret(plan: Plan) -> float:
    """Returns how many seconds longer than the best plan it takes, with the links that suit it less."""
    return max(seconds - least for seconds, least in zip(PLANS[plan], LEAST, strict=True))


@exercise("which_plan-regret", right=regret)
def judged_regret(answer: Callable[..., float]) -> str | None:
    """By how many seconds a plan is slower than the best one, on the links that suit it less."""

    def fast(plan: Plan) -> float:
        return PLANS[plan][0] - LEAST[0]

    def slow(plan: Plan) -> float:
        return PLANS[plan][1] - LEAST[1]

    both = _("You don't know yet which links you'll have. Count what you lose on both kinds.")
    same_links = _("Compare the plan with the best plan on the same links: subtract what that one takes.")
    return judge(
        answer,
        regret,
        [Case((plan,)) for plan in PLANS],
        misconceptions={
            lambda plan: min(fast(plan), slow(plan)): _(
                "That is the smaller of the two. Prepare for the links that suit the plan less."
            ),
            lambda plan: fast(plan) + slow(plan): _(
                "Your links are of one kind, so you lose only one of the two. Return the larger one."
            ),
            fast: both,
            slow: both,
            lambda plan: max(PLANS[plan]): same_links,
            lambda plan: PLANS[plan][1] - PLANS[plan][0]: same_links,
            lambda plan: PLANS[plan][1] - LEAST[0]: same_links,
            lambda plan: max(PLANS[plan][0] / LEAST[0], PLANS[plan][1] / LEAST[1]) - 1: _(
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
