"""A plan as the planners have it that readers grow, for the exercises that judge them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """What the class of `memory_and_time` and `which_plan` has."""

    data: int
    tensor: int
    examples: int
    microbatches: int
    stages: int = 1
    chunks: int = 1
    recompute: str = "nothing"
    zero: int = 0
    overlap: bool = False
