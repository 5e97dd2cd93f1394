"""Attempts at the exercises of `stages`."""

from dataclasses import replace
from types import SimpleNamespace

from tests.course import from_lesson
from tests.lessons.attempts import Attempts

Plan, pipeline = from_lesson("stages.checks", "Plan", "pipeline")

GOOD = Plan(16, 1, 1, 64, stages=4, chunks=3, recompute="selective", zero=1, overlap=True)
FSDP = Plan(64, 1, 2, 8, recompute="selective", zero=3, overlap=True)  # the best one with fast links
BET_ON_SLOW = Plan(16, 2, 1, 64, stages=2, recompute="selective", zero=1, overlap=True)


def in_slots(one, stages, microbatches, chunks):
    slot = one / 3 / chunks
    work = 3 * chunks * microbatches
    idle = 3 * (stages - 1)
    return (work + idle) * slot


ATTEMPTS = {
    "stages-pipeline": Attempts(
        right=(in_slots,),
        wrong=(
            (lambda one, stages, microbatches, chunks: one * (microbatches + stages // chunks), "21 slots"),
            (lambda *given: round(pipeline(*given)), "21 slots"),
            (lambda one, *given: pipeline(1, *given), "21 slots"),
            (lambda *given: pipeline(*given) / 3, "21 slots"),
        ),
    ),
    "stages-plan": Attempts(
        right=(GOOD, SimpleNamespace(**vars(GOOD))),
        wrong=(
            (FSDP, "the best plan for one kind of links"),
            (BET_ON_SLOW, "the best plan for one kind of links"),
            (replace(GOOD, chunks=2), "a plan with a regret of"),
            (replace(GOOD, chunks=4), "a plan with a regret of"),
            (replace(BET_ON_SLOW, chunks=2), "a plan with a regret of"),
            (replace(GOOD, overlap=False), "a plan with a regret of"),
            (replace(GOOD, recompute="full"), "a plan with a regret of"),
            (replace(GOOD, zero=0), "doesn't fit"),
            (replace(GOOD, recompute="nothing", examples=4, microbatches=16), "doesn't fit"),
            (replace(GOOD, examples=0.5, microbatches=128), "whole and positive"),
            (replace(GOOD, data=32), "number of devices"),
            (replace(GOOD, microbatches=32), "the batch"),
            (replace(GOOD, chunks=5), "the 48 blocks"),
            (replace(GOOD, data=64, stages=1, microbatches=16), "there must be stages"),
            (replace(GOOD, zero=2), "knows `zero`"),
            ((14.8, GOOD), "cannot read this value"),
            (object(), "Give the check a `Plan`"),
        ),
    ),
}
