"""The collectives of the lesson's training step, predicted from a plan.

They follow from the products (`communication.product`) and from the axes that a step sums over. Tested
against the steps that TensorFlow runs: tests/tf/test_plans.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course_lib.i18n import _
from course_lib.specs.collectives import Collective, Kind
from course_lib.specs.communication import product
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.plan import Axes, Plan
from course_lib.specs.sharding import Sharding

_FLOAT32_BYTES = 4

Exchange = tuple[str, Collective]  # what is exchanged or added up, in the reader's language, and how


def step_exchanges(plan: Plan, axes: Mapping[str, Axes], sizes: Mapping[str, int]) -> list[Exchange]:
    """Returns what the devices exchange to train on one batch, where no all-reduces are combined.

    They come forward and then backward. Where one does not wait for another, TensorFlow may run them in
    another order.

    >>> from course_lib import MeshSpec
    >>> mesh = MeshSpec([("batch", 4), ("model", 2)])
    >>> plan = Plan("model parallel", mesh, {"batch": "batch", "hidden": "model"})
    >>> axes = {"x": ("batch", "features"), "W1": ("features", "hidden"), "W2": ("hidden", "classes")}
    >>> sizes = {"batch": 64, "features": 1200, "hidden": 48, "classes": 2}
    >>> for tensor, collective in step_exchanges(plan, axes, sizes):
    ...     print(f"{tensor}: {collective}")
    mean: all-reduce over batch, 96 bytes
    variance: all-reduce over batch, 96 bytes
    hidden W2: all-reduce over model, 128 bytes
    loss: all-reduce over batch, 4 bytes
    right answers: all-reduce over batch, 4 bytes
    gradient of b2: all-reduce over batch, 8 bytes
    gradient of W2: all-reduce over batch, 192 bytes
    gradient of mean: all-reduce over batch, 96 bytes
    gradient of variance: all-reduce over batch, 96 bytes
    gradient of b1: all-reduce over batch, 96 bytes
    gradient of W1: all-reduce over batch, 115200 bytes

    Args:
        plan: one that splits batch, features and hidden units, or some of them, and not the classes.
        axes: the names of the axes of `x`, `W1` and `W2`, at least.
        sizes: the size of each axis.

    Raises:
        CourseError: one mesh dimension would split two axes of a tensor, or a size does not divide.
    """
    step = _Step(plan)
    laid_out = plan.shardings({name: axes[name] for name in ("x", "W1", "W2")}, sizes)
    x, first, second = (_Matrix(name, sharding) for name, sharding in laid_out.items())
    rows, units = x.entries[0], first.entries[1]
    # Where one mesh dimension splits rows and units, the units keep it, and every device takes all rows.
    hidden = step.product("hidden", x, first, (UNSHARDED if rows == units else rows, units))
    width, classes = hidden.sharding.local_shape[1], second.sharding.local_shape[1]
    for moment in (_("mean"), _("variance")):
        step.sum(moment, hidden.entries[0], width)
    logits = step.product("hidden W2", hidden, second, (hidden.entries[0], UNSHARDED))
    for total in (_("loss"), _("right answers")):
        step.sum(total, rows, 1)
    split = LayoutSpec((rows, UNSHARDED), plan.mesh).of(logits.sharding.global_shape)
    to_logits = _Matrix(_gradient("logits"), split)  # the labels have a layout, and the loss takes theirs
    step.sum(_gradient("b2"), rows, classes)
    step.product(_gradient("W2"), hidden.transposed, to_logits, second.entries)
    to_hidden = step.product(_gradient("hidden"), to_logits, second.transposed, hidden.entries)
    for sum_over_rows in (_gradient(_("mean")), _gradient(_("variance")), _gradient("b1")):
        step.sum(sum_over_rows, hidden.entries[0], width)
    step.product(_gradient("W1"), x.transposed, to_hidden, first.entries)
    return step.exchanges


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
    """Collects the exchanges of a step as its matrices are made."""

    def __init__(self, plan: Plan) -> None:
        self.exchanges: list[Exchange] = []
        self._mesh = plan.mesh
        self._gathered: set[tuple[str, tuple[str, ...]]] = set()

    def product(self, name: str, left: _Matrix, right: _Matrix, wanted: Sequence[str]) -> _Matrix:
        """Returns a product in the wanted layout; what two products need gathered alike is gathered once."""
        found = product(left.sharding, right.sharding, LayoutSpec(wanted, self._mesh))
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
            self.exchanges.append((name if factor is None else factor.name, change.collective))
        return _Matrix(name, found.result)

    def sum(self, what: str, mesh_dim: str, num_elements: int) -> None:
        """Adds the all-reduce of a sum over rows, so many numbers; none where a device has all rows."""
        if mesh_dim != UNSHARDED and self._mesh.dim_size(mesh_dim) > 1:
            num_bytes = num_elements * _FLOAT32_BYTES
            self.exchanges.append((what, Collective(Kind.ALL_REDUCE, self._mesh, (mesh_dim,), num_bytes)))


def _gradient(name: str) -> str:
    return _("gradient of {name}", name=name)
