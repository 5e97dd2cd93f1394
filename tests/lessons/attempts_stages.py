"""Attempts at the exercises of `stages`."""

from fractions import Fraction

from tests.course import from_lesson
from tests.lessons.attempts import Attempts

pipeline = from_lesson("stages.checks", "pipeline")


def in_slots(one, stages, microbatches, chunks):
    slot = one / 3 / chunks
    work = 3 * chunks * microbatches
    idle = 3 * (stages - 1)
    return (work + idle) * slot


def in_fractions(one, stages, microbatches, chunks):
    return one * (microbatches + Fraction(stages - 1, chunks))


ATTEMPTS = {
    "stages-pipeline": Attempts(
        right=(in_slots, in_fractions),
        wrong=(
            (lambda one, stages, microbatches, chunks: one * (microbatches + (stages - 1) // chunks), "`/`"),
            (lambda one, stages, *rest: 0 if stages == 1 else pipeline(one, stages, *rest), "single stage"),
            (lambda one, stages, number, chunks: pipeline(one, stages, max(number, stages), chunks), "any"),
            (
                lambda one, stages, number, chunks: pipeline(
                    one, stages, -(-number // stages) * stages, chunks
                ),
                "any number",
            ),
            (lambda *given: round(pipeline(*given)), "21 slots"),
        ),
    ),
}
