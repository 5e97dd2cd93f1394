"""Attempts at the exercise of `which_plan`."""

from tests.course import from_lesson
from tests.lessons.attempts import Attempts

LEAST, PLANS, least_regret = from_lesson("which_plan.checks", "LEAST", "PLANS", "regret")


def over_both_kinds(plan):
    return sorted(seconds - least for seconds, least in zip(PLANS[plan], LEAST, strict=True))[-1]


ATTEMPTS = {
    "which_plan-regret": Attempts(
        right=(over_both_kinds, lambda plan: round(least_regret(plan), 2)),
        wrong=(
            (lambda plan: PLANS[plan][0] - LEAST[0], "on both kinds"),
            (lambda plan: [least_regret(plan)], "is 2.87 s"),
            (lambda plan: least_regret(plan) / LEAST[1], "is 2.87 s"),
            (lambda _plan: 0.7806, "is 2.87 s"),
            (lambda plan: round(least_regret(plan)), "is 2.87 s"),
            ([least_regret], "cannot read this value"),
        ),
    ),
}
