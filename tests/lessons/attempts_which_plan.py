"""Attempts at the exercise of `which_plan`."""

from tests.course import from_lesson
from tests.lessons.attempts import Attempts

FAST, LEAST, SLOW, least_regret, seconds = from_lesson(
    "which_plan.checks", "FAST", "LEAST", "SLOW", "regret", "seconds"
)


def over_both_kinds(plan):
    return sorted(seconds(plan, links) - LEAST[links] for links in (SLOW, FAST))[-1]


ATTEMPTS = {
    "which_plan-regret": Attempts(
        right=(over_both_kinds, lambda plan: round(least_regret(plan), 2)),
        wrong=(
            (lambda plan: seconds(plan, FAST) - LEAST[FAST], "on both kinds"),
            (lambda plan: [least_regret(plan)], "is 2.87 s"),
            (lambda plan: least_regret(plan) / LEAST[SLOW], "is 2.87 s"),
            (lambda _plan: 0.7806, "is 2.87 s"),
            (lambda plan: round(least_regret(plan)), "is 2.87 s"),
            ([least_regret], "cannot read this value"),
        ),
    ),
}
