"""Timelines: what happens in a step under a plan, in order, and who waits for whom."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from course_lib.specs.drawing import DrawsItself
from course_lib.specs.plan import Plan


@dataclass(frozen=True)
class Phase:
    """A part of a step, the same under every plan.

    Attributes:
        names: what is computed.
        sums_over: the axis over which each of these is summed. Where a plan splits this axis every device has
            only a partial sum, and an all-reduce follows. None if no axis is summed.
    """

    names: tuple[str, ...]
    sums_over: str | None = None


@dataclass(frozen=True)
class Event:
    """What devices do at one place in the order.

    Attributes:
        names: what is computed, or what is all-reduced.
        mesh_dim: the mesh dimension over which it is all-reduced, or None where each device computes alone.
    """

    names: tuple[str, ...]
    mesh_dim: str | None = None


@dataclass(frozen=True, init=False, repr=False)
class Timeline(DrawsItself):
    """The phases of a step as a plan has the devices work through them. It draws itself.

    There are no times in it, only the order.

    >>> from course_lib.specs.plan import data_parallel
    >>> phases = [Phase(("logits",)), Phase(("loss",), "batch"), Phase(("update",))]
    >>> for event in Timeline(data_parallel(8), phases).events:
    ...     print(event.names, event.mesh_dim)
    ('logits', 'loss') None
    ('loss',) batch
    ('update',) None

    Attributes:
        plan: which mesh dimension splits which axis.
        phases: the step, in order.
    """

    drawn_by = "lessons.lesson_03_one_step.timeline_picture"

    plan: Plan
    phases: tuple[Phase, ...]

    def __init__(self, plan: Plan, phases: Iterable[Phase]) -> None:
        object.__setattr__(self, "plan", plan)
        object.__setattr__(self, "phases", tuple(phases))

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """What happens, in order: computing up to each all-reduce, and the all-reduces."""
        events: list[Event] = []
        computed: list[str] = []
        for phase in self.phases:
            computed += phase.names
            mesh_dim = self._summing_dim(phase)
            if mesh_dim is not None:
                events += [Event(tuple(computed)), Event(phase.names, mesh_dim)]
                computed = []
        return (*events, Event(tuple(computed))) if computed else tuple(events)

    @property
    def all_reduces(self) -> tuple[Event, ...]:
        """The events in which devices wait for each other."""
        return tuple(event for event in self.events if event.mesh_dim is not None)

    @property
    def summing_dims(self) -> tuple[str, ...]:
        """The mesh dimensions over which there are all-reduces, in the order in which they come up."""
        return tuple(dict.fromkeys(name for event in self.events if (name := event.mesh_dim) is not None))

    def _summing_dim(self, phase: Phase) -> str | None:
        axis = phase.sums_over
        return None if axis is None or self.plan.num_shards(axis) == 1 else self.plan.splits[axis]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.phases)} phases under the plan {self.plan.name!r}>"
