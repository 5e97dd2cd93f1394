"""A training step of the course's classifier under any plan, predicted from the rules of products and sums.

Held against the steps that TensorFlow runs under plans drawn at random: tests/tf/test_plans.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course_lib.i18n import _
from course_lib.specs.collectives import Collective, Kind
from course_lib.specs.communication import FACTORS, PRODUCT, Rule, Step, product
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.plan import BATCH, Axes, Plan
from course_lib.specs.sharding import Sharding
from course_lib.specs.step import Event, Phase, gradient_of

TENSORS: dict[str, Axes] = {
    "x": (BATCH, "features"),
    "W1": ("features", "hidden"),
    "b1": ("hidden",),
    "W2": ("hidden", "classes"),
    "b2": ("classes",),
}


def classifier_step(plan: Plan, sizes: Mapping[str, int], *, normalized: bool = False) -> list[Event]:
    """Returns a step of the course's classifier, where TensorFlow combines no all-reduces.

    The classifier is `relu(x @ W1 + b1) @ W2 + b2`. Where one exchange does not wait for another, TensorFlow
    may run them in another order.

    >>> from course_lib import MeshSpec
    >>> mesh = MeshSpec([("batch", 4), ("model", 2)])
    >>> plan = Plan("model parallel", mesh, {"batch": "batch", "hidden": "model"})
    >>> sizes = {"batch": 64, "features": 1200, "hidden": 48, "classes": 2}
    >>> for event in classifier_step(plan, sizes):
    ...     if event.collective:
    ...         print(f"{event.phase}, {event.tensor}: {event.collective}")
    forward, hidden W2: all-reduce over model, 128 bytes
    forward, loss: all-reduce over batch, 4 bytes
    forward, accuracy: all-reduce over batch, 4 bytes
    backward, gradient of b2: all-reduce over batch, 8 bytes
    backward, gradient of W2: all-reduce over batch, 192 bytes
    backward, gradient of b1: all-reduce over batch, 96 bytes
    backward, gradient of W1: all-reduce over batch, 115200 bytes

    Args:
        plan: one that splits `batch`, `features` and `hidden`, or some of them, and not the classes.
        sizes: the size of each axis.
        normalized: whether batch normalization, without a trained scale and shift, follows the relu.

    Raises:
        CourseError: one mesh dimension would split two axes of a tensor, or a size does not divide.
    """
    step = _Maker(plan, sizes)
    x, first, second = (_Matrix(name, TENSORS[name], held) for name, held in step.held.items())
    rows, units = x.entries[0], first.entries[1]
    # Where one mesh dimension splits rows and units, the units keep it, and every device takes all rows.
    hidden = step.product("x W1", x, first, (UNSHARDED if rows == units else rows, units))
    hidden = step.make("hidden", hidden)
    taken = hidden.entries[0]
    if normalized:
        for moment in (_("mean"), _("variance")):
            step.sum(moment, ("hidden",), taken)
        hidden = step.make(_("normalized hidden"), hidden)
    logits = step.product("hidden W2", hidden, second, (taken, UNSHARDED))
    for total in (_("loss"), _("accuracy")):
        step.sum(total, (), rows)
    step.phase = Phase.BACKWARD
    to_logits = step.make(gradient_of("logits"), logits, (rows, UNSHARDED))  # the loss has the labels' layout
    step.sum(gradient_of("b2"), ("classes",), rows)
    step.product(gradient_of("W2"), hidden.transposed, to_logits, second.entries)
    to_hidden = step.product(gradient_of("hidden"), to_logits, second.transposed, hidden.entries)
    if normalized:
        for moment in (_("mean"), _("variance")):
            step.sum(gradient_of(moment), ("hidden",), taken)
    step.sum(gradient_of("b1"), ("hidden",), taken)
    step.product(gradient_of("W1"), x.transposed, to_hidden, first.entries)
    step.phase = Phase.UPDATE
    step.make(_("updated variables"), first)
    return step.events


@dataclass(frozen=True)
class _Matrix:
    """A matrix of the step, `[rows, columns] global`, under the name that it has untransposed."""

    name: str
    axes: Axes
    sharding: Sharding
    is_transposed: bool = False

    @property
    def entries(self) -> tuple[str, ...]:
        return self.sharding.layout.sharding_specs

    @property
    def transposed(self) -> _Matrix:
        return _Matrix(self.name, self.axes[::-1], _transposed(self.sharding), not self.is_transposed)


class _Maker:
    """Collects the events of a step as its tensors are made."""

    def __init__(self, plan: Plan, sizes: Mapping[str, int]) -> None:
        self.phase = Phase.FORWARD
        self.events: list[Event] = []
        self.held = plan.shardings({name: TENSORS[name] for name in ("x", "W1", "W2")}, sizes)
        self._plan, self._sizes = plan, sizes
        self._gathered: set[tuple[str, LayoutSpec]] = set()

    def make(self, name: str, like: _Matrix, entries: Sequence[str] | None = None) -> _Matrix:
        """Returns a matrix of the same axes that each device makes of what it has."""
        held = LayoutSpec(entries or like.entries, self._plan.mesh).of(like.sharding.global_shape)
        self.events.append(Event(self.phase, name, held, held))
        return _Matrix(name, like.axes, held)

    def sum(self, name: str, axes: Axes, over: str) -> None:
        """Adds a sum over rows, which a mesh dimension may split."""
        held = self._plan.layout(axes).of([self._sizes[axis] for axis in axes])
        collective = None
        if over != UNSHARDED and self._plan.mesh.dim_size(over) > 1:
            collective = Collective(Kind.ALL_REDUCE, self._plan.mesh, (over,), held.bytes_per_device())
        self.events.append(Event(self.phase, name, held, held, collective, BATCH, self._sizes[BATCH]))

    def product(self, name: str, left: _Matrix, right: _Matrix, wanted: Sequence[str]) -> _Matrix:
        """Returns a product in the wanted layout; what two products need gathered alike is gathered once."""
        found = product(left.sharding, right.sharding, LayoutSpec(wanted, self._plan.mesh))
        factors = dict(zip(FACTORS, (left, right), strict=True))
        own = [change for change in found.steps if change.tensor == PRODUCT]
        for change in found.steps:
            if change.tensor in factors and change.collective is not None:
                self._gather(factors[change.tensor], change)
        if not own or own[0].rule is not Rule.PARTIAL_SUM:
            made = own[0].source if own else found.result
            self.events.append(Event(self.phase, name, made, made))
        for change in own:
            adds = (left.axes[1], left.sharding.global_shape[1]) if change.rule is Rule.PARTIAL_SUM else ()
            if adds or change.collective is not None:
                event = Event(self.phase, name, change.source, change.sharding, change.collective, *adds)
                self.events.append(event)
        return _Matrix(name, (left.axes[0], right.axes[1]), found.result)

    def _gather(self, factor: _Matrix, change: Step) -> None:
        source, result = change.source, change.sharding
        if factor.is_transposed:
            source, result = _transposed(source), _transposed(result)
        if (factor.name, result.layout) not in self._gathered:
            self._gathered.add((factor.name, result.layout))
            self.events.append(Event(self.phase, factor.name, source, result, change.collective))


def _transposed(sharding: Sharding) -> Sharding:
    layout = LayoutSpec(sharding.layout.sharding_specs[::-1], sharding.mesh)
    return layout.of(sharding.global_shape[::-1])
