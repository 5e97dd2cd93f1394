"""The exercise of this lesson: the memory that a device needs for a step of a given time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.i18n import _
from lessons.scale.plans import Plan

# Seconds of a step of the lesson's large network on its A100s, and gigabytes that a device holds
PLANS = {
    Plan(12, 8, 1, 192, stages=16, chunks=5): (20.66460978, 74.391224),
    Plan(24, 8, 1, 96, stages=8, chunks=5, recompute="selective"): (20.14145453, 68.527587),
    Plan(96, 4, 1, 24, stages=4, chunks=10, recompute="selective", zero=1): (19.28390318, 73.203974),
    Plan(768, 2, 1, 3, recompute="selective", zero=3, overlap=True): (17.57195789, 50.543722),
    Plan(24, 8, 2, 48, stages=8, chunks=2, recompute="full"): (27.70841791, 50.182750),
    Plan(24, 8, 1, 96, stages=8, chunks=10, recompute="selective", zero=1, overlap=True): (
        20.13308037,
        39.286473,
    ),
    Plan(96, 4, 1, 24, stages=4, chunks=10): (19.12951308, 225.437549),
}


def smallest_memory(plans: Sequence[Plan], seconds: float) -> float:
    """Returns the gigabytes of the plan that needs fewest, of those that take at most so long."""
    return min(PLANS[plan][1] for plan in plans if PLANS[plan][0] <= seconds)


@exercise("memory_and_time-smallest", right=smallest_memory)
def judged_memory(answer: Callable[..., float]) -> str | None:
    """How many gigabytes a device needs at least for a step of at most so many seconds."""
    every = [*PLANS]

    def fastest(plans: Sequence[Plan], _seconds: float) -> float:
        return min(PLANS[plan] for plan in plans)[1]

    return judge(
        answer,
        smallest_memory,
        [
            Case((every, 28)),
            Case((every, 21)),
            Case((every, 20)),
            Case((every[:3], 20.5)),
            Case((every[:3], 25)),
            Case((every[4:], 19.5), _("`ranked` drops all plans over 80 GB. Look at every plan.")),
            Case(([every[6], every[3]], 18)),
        ],
        misconceptions={
            fastest: _("The fastest plan needs that. A slower one may need less, and still be fast enough."),
            lambda plans, _seconds: min(PLANS[plan][1] for plan in plans): _(
                "Leave out the plans that take longer than `seconds`."
            ),
            lambda plans, seconds: max(PLANS[plan][1] for plan in plans if PLANS[plan][0] <= seconds): _(
                "That is the plan that needs most. Return the least."
            ),
            lambda plans, seconds: min(PLANS[plan][1] for plan in plans if PLANS[plan][0] >= seconds): _(
                "The plans that count are those that take at most `seconds`: turn the comparison round."
            ),
            lambda plans, seconds: 1e9 * smallest_memory(plans, seconds): _(
                "Return gigabytes: divide the bytes by 1e9."
            ),
        },
        tolerance=1e-2,
        advice=_("A step of 20 s needs 91.9 GB with `plans`, and 48.0 GB with `with_fsdp`."),
    )
