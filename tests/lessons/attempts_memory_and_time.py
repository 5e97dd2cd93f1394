"""Attempts at the exercise of `memory_and_time`."""

from tests.course import from_lesson
from tests.lessons.attempts import Attempts

PLANS, least = from_lesson("memory_and_time.checks", "PLANS", "smallest_memory")

ATTEMPTS = {
    "memory_and_time-smallest": Attempts(
        right=(lambda plans, seconds: round(least(plans, seconds), 1),),
        wrong=(
            (lambda plans, _seconds: min(PLANS[plan] for plan in plans)[1], "A slower one"),
            (lambda plans, seconds: 1e9 * least(plans, seconds), "divide the bytes"),
            (lambda plans, seconds: least(plans, seconds) / 8, "needs 91.9 GB"),
            (lambda _plans, _seconds: 48.0, "needs 91.9 GB"),
        ),
    ),
}
