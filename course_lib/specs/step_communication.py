"""The collectives of one training step of a classifier of dense layers, predicted from a plan.

They follow from the products (`communication.product`) and from the axes that a step sums over. Tested
against the steps that TensorFlow runs: tests/tf/test_step_communication.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from course_lib.i18n import _
from course_lib.specs.collectives import Collective, Kind
from course_lib.specs.communication import product, relayout
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.plan import BATCH, Axes, Plan
from course_lib.specs.sharding import Sharding

LAYERS = ("features", "hidden", "classes")  # of models.sentiment.MLP
NORMALISED = ("hidden",)
_FLOAT32_BYTES = 4


@dataclass(frozen=True)
class Exchange:
    """One collective of a training step.

    Attributes:
        tensor: what is exchanged or added up, in the reader's language.
        collective: among whom, and how much.
    """

    tensor: str
    collective: Collective

    def __str__(self) -> str:
        return f"{self.tensor}: {self.collective}"


@dataclass(frozen=True)
class StepCommunication:
    """What the devices exchange for one training step.

    Attributes:
        exchanges: the collectives, forward and then backward. Where one does not wait for another, TensorFlow
            may run them in another order.
    """

    exchanges: tuple[Exchange, ...]

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """The collectives alone."""
        return tuple(exchange.collective for exchange in self.exchanges)

    @property
    def bytes_sent(self) -> float:
        """How many bytes a device sends in all of them, each as a ring."""
        return float(sum(collective.bytes_sent for collective in self.collectives))


def step_collectives(
    plan: Plan, sizes: Mapping[str, int], layers: Axes = LAYERS, normalised: Axes = NORMALISED
) -> StepCommunication:
    """Returns what the devices exchange to train on one batch, where no all-reduces are combined.

    Held against what runs with one hidden layer. With two, a gather too many is told where one mesh dimension
    splits the batch, the first hidden layer and the classes.

    >>> from course_lib.specs.plan import model_parallel
    >>> sizes = {"batch": 64, "features": 1200, "hidden": 48, "classes": 2}
    >>> for exchange in step_collectives(model_parallel(4, 2), sizes).exchanges:
    ...     print(exchange)
    mean and variance: all-gather over batch, 768 bytes
    n W2: all-reduce over model, 128 bytes
    right answers: all-reduce over batch, 4 bytes
    loss: all-reduce over batch, 4 bytes
    gradients of mean and variance: all-reduce over batch, 192 bytes
    gradient of W2: all-reduce over batch, 192 bytes
    gradient of b2: all-reduce over batch, 8 bytes
    gradient of W1: all-reduce over batch, 115200 bytes
    gradient of b1: all-reduce over batch, 96 bytes

    Args:
        plan: any plan that the model can be trained with.
        sizes: the size of the batch and of each axis.
        layers: the axes that the dense layers join, the inputs' first and the classes last.
        normalised: those with batch normalisation behind them.

    Raises:
        CourseError: one mesh dimension would split two axes of a tensor, or an axis has no size or one that
            does not divide.
    """
    tensors: dict[str, Axes] = {"x": (BATCH, layers[0])}
    for number, axes in enumerate(itertools.pairwise(layers), start=1):
        tensors |= {f"W{number}": axes, f"b{number}": axes[1:]}
    step = _Step(plan, plan.shardings(tensors, sizes))
    values = [step.given["x"]]
    for number, units in enumerate(layers[1:], start=1):
        values.append(step.forward(number, values[-1], is_normalised=units in normalised))
    gradient = step.loss(values[-1])
    for number in range(len(layers) - 1, 0, -1):
        is_normalised = layers[number - 1] in normalised
        gradient = step.backward(number, values[number - 1], gradient, is_normalised=is_normalised)
    return StepCommunication(tuple(step.exchanges))


@dataclass(frozen=True)
class _Matrix:
    """A matrix of the step, `[rows, columns] global`, under the name that it has untransposed."""

    name: str
    sharding: Sharding
    is_transposed: bool = False

    @property
    def entries(self) -> tuple[str, ...]:
        return self.sharding.layout.sharding_specs

    @property
    def transposed(self) -> _Matrix:
        layout = LayoutSpec(self.entries[::-1], self.sharding.mesh)
        return _Matrix(self.name, layout.of(self.sharding.global_shape[::-1]), not self.is_transposed)


class _Step:
    """Collects the exchanges of a step as its matrices are made.

    Attributes:
        given: the batch and the variables.
        exchanges: the collectives up to now.
    """

    def __init__(self, plan: Plan, given: Mapping[str, Sharding]) -> None:
        self.given = {name: _Matrix(name, each) for name, each in given.items()}
        self.exchanges: list[Exchange] = []
        self._plan, self._batch_dim = plan, plan.splits.get(BATCH, UNSHARDED)
        self._gathered: set[tuple[str, tuple[str, ...]]] = set()

    def forward(self, number: int, value: _Matrix, *, is_normalised: bool) -> _Matrix:
        """Returns what a dense layer makes, `[batch, units] global`.

        Its readers want rows split as the labels are, and units split as the bias is: where one mesh
        dimension would split both, the units keep it.
        """
        weight = self.given[f"W{number}"]
        units = weight.entries[1]
        rows = UNSHARDED if self._batch_dim == units else self._batch_dim
        made = self._product(f"{value.name} W{number}", value, weight, (rows, units))
        if not is_normalised:
            return replace(made, name=f"y{number}")
        moments = 2 * self._plan.num_shards(BATCH) * made.sharding.local_shape[1]
        self._add(_("mean and variance"), rows, moments, Kind.ALL_GATHER)
        return replace(made, name="n")

    def loss(self, logits: _Matrix) -> _Matrix:
        """Returns the gradient of the logits, `[batch, classes] global`.

        The largest logit of a row is looked for in whole rows; the loss takes rows that are split.
        """
        dim = self._batch_dim
        classes = UNSHARDED if logits.entries[1] == dim else logits.entries[1]
        self._relayout(logits, (dim, UNSHARDED))
        taken = self._relayout(logits, (dim, classes))
        for what in (_("largest logits"), _("sums of exponentials"), _("losses of the rows")):
            self._add(what, classes, taken.sharding.local_shape[0])
        for what in (_("right answers"), _("loss")):
            self._add(what, dim, 1)
        return replace(taken, name=_gradient(logits.name))

    def backward(self, number: int, value: _Matrix, gradient: _Matrix, *, is_normalised: bool) -> _Matrix:
        """Returns the gradient of a layer's input, having taken those of its weight and of its bias.

        Args:
            number: of the layer.
            value: its input, `[batch, units] global`.
            gradient: of its output, `[batch, units] global`.
            is_normalised: whether its input is.
        """
        weight, below = self.given[f"W{number}"], value
        if number > 1:
            below = self._product(_gradient(value.name), gradient, weight.transposed, value.entries)
        if is_normalised:
            units = value.sharding.local_shape[1]
            self._add(_("gradients of mean and variance"), value.entries[0], 2 * units)
        self._product(_gradient(weight.name), value.transposed, gradient, weight.entries)
        self._add(_gradient(f"b{number}"), gradient.entries[0], gradient.sharding.local_shape[1])
        return below

    def _product(self, name: str, left: _Matrix, right: _Matrix, wanted: Sequence[str]) -> _Matrix:
        """Returns a product; what two products need gathered alike is gathered once."""
        found = product(left.sharding, right.sharding, LayoutSpec(wanted, self._plan.mesh))
        factors = {"A": left, "B": right}
        for change in found.steps:
            factor, after = factors.get(change.tensor), change.sharding.layout.sharding_specs
            if change.collective is None:
                continue
            if factor is not None:
                gathered = factor.name, after[::-1] if factor.is_transposed else after
                if gathered in self._gathered:
                    continue
                self._gathered.add(gathered)
            self.exchanges.append(Exchange(name if factor is None else factor.name, change.collective))
        return _Matrix(name, found.result)

    def _relayout(self, matrix: _Matrix, entries: Sequence[str]) -> _Matrix:
        found = relayout(matrix.sharding, LayoutSpec(entries, self._plan.mesh))
        self.exchanges += [Exchange(matrix.name, each) for each in found.collectives]
        return replace(matrix, sharding=found.result)

    def _add(self, what: str, mesh_dim: str, num_elements: int, kind: Kind = Kind.ALL_REDUCE) -> None:
        """Adds an exchange after which each device holds so many numbers; nothing where it is alone."""
        if mesh_dim != UNSHARDED and self._plan.mesh.dim_size(mesh_dim) > 1:
            num_bytes = num_elements * _FLOAT32_BYTES
            self.exchanges.append(Exchange(what, Collective(kind, self._plan.mesh, (mesh_dim,), num_bytes)))


def _gradient(name: str) -> str:
    return _("gradient of {name}", name=name)
