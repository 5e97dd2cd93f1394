"""The exercise of this lesson: the time of a pipeline."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
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
    any_number = _("Without chunks, there may be any number of micro-batches.")
    work = _("A stage works on every micro-batch, and each of them takes it the time `one`.")
    return judge(
        answer,
        pipeline,
        [
            *one_chunk,
            *drawn(_figures, count=30),
            Case((3, 1, 4, 1), _("A single stage has no bubble, but it still has to work.")),
            *(Case((3, 4, number, 1), any_number) for number in (2, 6)),
        ],
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
            lambda one, stages, microbatches, chunks: (microbatches + (stages - 1) // chunks) * one: _(
                "A bubble may be as long as half a micro-batch: divide by `/`."
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
