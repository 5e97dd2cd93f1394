"""A training step as events in order: what each device makes, which exchange follows, and why.

Held against the steps that TensorFlow runs: tests/tf/test_plans.py, of a transformer tests/tf/test_block.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from course_lib.i18n import _
from course_lib.specs.collectives import Collective, Kind
from course_lib.specs.sharding import Sharding


class Phase(StrEnum):
    """The parts of a training step."""

    FORWARD = "forward"
    BACKWARD = "backward"
    UPDATE = "update"


@dataclass(frozen=True)
class Event:
    """Each device makes its part of a tensor; where that is not enough, an exchange follows.

    Attributes:
        phase: in which part of the step.
        tensor: what is made or exchanged, in the reader's language.
        source: what a device has before the exchange; of a partial sum, the layout of the sum.
        result: what it has afterwards.
        collective: the exchange, if there is one.
        axis: the axis that is summed over, of which a device has a part; "" where nothing is added.
        terms: the length of this axis.
    """

    phase: Phase
    tensor: str
    source: Sharding
    result: Sharding
    collective: Collective | None = None
    axis: str = ""
    terms: int = 0

    @property
    def is_sum(self) -> bool:
        """Whether the exchange adds what the devices have."""
        return self.collective is not None and self.collective.kind is Kind.ALL_REDUCE


def gradient_of(name: str) -> str:
    """Returns what a gradient is called."""
    return _("gradient of {name}", name=name)
