"""A pipeline step, event by event: which stage works when, one pass after another (1F1B) or interleaved."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Pass:
    """The way of a micro-batch through one of the parts of the network that a stage has.

    Attributes:
        is_forward: or else backward.
        part: of the network, counted along it: a stage has each `stages`-th of them.
        microbatch: its number, from 0.
        start: when it begins.
        end: when it is over.
    """

    is_forward: bool
    part: int
    microbatch: int
    start: float
    end: float


def passes(
    stages: int,
    microbatches: int,
    chunks: int = 1,
    forward: float = 1.0,
    message: float = 0.0,
    *,
    backward: float = 2.0,
) -> list[list[Pass]]:
    """Returns what each stage does in a step, event by event, in the order of time.

    Each stage keeps to its own order and waits for what it needs.

    Args:
        stages: how many devices follow each other.
        microbatches: of a step; with more than one chunk a multiple of the stages.
        chunks: how many parts of the network, apart from each other, each stage has.
        forward: how long the forward pass through one part takes.
        message: how long what is passed on takes to the next part.
        backward: how many times as long as the forward pass the backward pass takes.
    """
    left = [list(_order(stage, stages, microbatches, chunks)) for stage in range(stages)]
    done: list[list[Pass]] = [[] for _stage in range(stages)]
    ends: dict[tuple[bool, int, int], float] = {}
    while any(left):
        for stage, waiting in enumerate(left):
            if not waiting:
                continue
            is_forward, part, microbatch = waiting[0]
            begin = max(
                done[stage][-1].end if done[stage] else 0.0,
                _arrival(ends, waiting[0], last=stages * chunks - 1, message=message),
            )
            if begin < math.inf:
                end = begin + forward * (1 if is_forward else backward)
                ends[waiting.pop(0)] = end
                done[stage].append(Pass(is_forward, part, microbatch, begin, end))
    return done


def _order(stage: int, stages: int, microbatches: int, chunks: int) -> Iterator[tuple[bool, int, int]]:
    """Yields what a stage does: whether it goes forward, through which part, with which micro-batch.

    It goes forward until its first micro-batch can come back, and then forward and backward in turn. Source:
    https://arxiv.org/abs/2104.04473, figure 4.
    """
    many = microbatches * chunks
    first = min(many, (stages - stage - 1) * min(chunks, 2) + (chunks - 1) * stages)
    numbers = {True: itertools.count(), False: itertools.count()}
    for is_forward in [True] * first + [True, False] * (many - first) + [False] * first:
        group, at = divmod(next(numbers[is_forward]), stages * chunks)
        chunk = at // stages if is_forward else chunks - 1 - at // stages
        yield is_forward, chunk * stages + stage, group * stages + at % stages


def _arrival(
    ends: dict[tuple[bool, int, int], float], needing: tuple[bool, int, int], *, last: int, message: float
) -> float:
    """Returns when what a pass needs is there; infinity where that is not known yet."""
    is_forward, part, microbatch = needing
    if is_forward and part == 0:
        return 0.0
    if not is_forward and part == last:
        return ends.get((True, part, microbatch), math.inf)
    before = part - 1 if is_forward else part + 1
    return ends.get((is_forward, before, microbatch), math.inf) + message
