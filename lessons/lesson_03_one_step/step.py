"""The training step of lesson 3: what it computes, in order, and who waits for whom under a plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from course_lib.i18n import _
from course_lib.specs.drawing import DrawsItself
from course_lib.specs.plan import BATCH, Plan


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


@dataclass(frozen=True, repr=False)
class Timeline(DrawsItself):
    """The phases of a step as a plan has the devices work through them. It draws itself.

    There are no times in it, only the order.

    >>> from course_lib.specs.plan import data_parallel
    >>> phases = (Phase(("logits",)), Phase(("loss",), "batch"), Phase(("update",)))
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

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """What happens, in order: computing up to each all-reduce, and the all-reduces."""
        events: list[Event] = []
        computed: list[str] = []
        for phase in self.phases:
            computed += phase.names
            axis = phase.sums_over
            if axis is not None and self.plan.num_shards(axis) > 1:
                events += [Event(tuple(computed)), Event(phase.names, self.plan.splits[axis])]
                computed = []
        return (*events, Event(tuple(computed))) if computed else tuple(events)

    @property
    def all_reduces(self) -> tuple[Event, ...]:
        """The events in which devices wait for each other."""
        return tuple(event for event in self.events if event.mesh_dim is not None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.phases)} phases under the plan {self.plan.name!r}>"


def mlp_step(plan: Plan) -> Timeline:
    """Returns the order of a step of two dense layers with `tf.nn.moments` between them. It draws itself.

    The sums of a phase share an all-reduce, as TensorFlow 2.21 combines them: the loss waits for the
    gradients.

    Mean and variance scale and shift the hidden units, `n = scale * y + shift`. So on the way back the
    gradients of these two are sums over the batch as well. `models.MLP` sums less often: it takes both
    moments at once.

    >>> from course_lib.specs.plan import data_parallel, model_parallel, spatial_parallel
    >>> for plan in (data_parallel(8), model_parallel(4, 2), spatial_parallel()):
    ...     rounds = mlp_step(plan).all_reduces
    ...     print(sum(len(event.names) for event in rounds), len(rounds))
    9 4
    10 5
    11 6
    """
    phases = (
        Phase(("x W1",), "features"),
        Phase((_("mean"),), BATCH),
        Phase((_("variance"),), BATCH),
        Phase(("n W2",), "hidden"),
        Phase(tuple(_gradient(name) for name in (_("shift"), _("scale"))), BATCH),
        Phase((_("loss"), *(_gradient(name) for name in ("W1", "b1", "W2", "b2"))), BATCH),
        Phase((_("update"),)),
    )
    return Timeline(plan, phases)


def _gradient(name: str) -> str:
    return _("gradient of {name}", name=name)
