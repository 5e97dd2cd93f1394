"""The loss scaling explorer: choose replicas, examples and a division, and see which gradient follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from course_lib.errors import CourseError
from course_lib.i18n import _, join_sentences, later
from course_lib.pictures.bars import Bar, Bars
from course_lib.pictures.shapes import Node, node
from course_lib.pictures.text import form_value
from course_lib.runtime import start_tensorflow
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Choice, Group, State, numbers
from course_lib.widgets.listings import region
from lessons.strategies.boxes import Box, Line, Scheme, scheme_image
from lessons.strategies.global_batches import split

DIVISIONS = GLOBAL, FULL, REPLICA, KERAS, TWICE = ("global", "full", "replica", "keras", "twice")
Examples = tuple[tuple[float, float], ...]  # the loss of each example, and its gradient


class Divided(NamedTuple):
    """A number of each example, replica by replica, and what each replica makes of its own."""

    parts: tuple[tuple[float, ...], ...]  # a replica may have none
    reports: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The true mean over all examples."""
        return sum(map(sum, self.parts)) / sum(map(len, self.parts))

    @property
    def total(self) -> float:
        """The sum over the replicas of what they return."""
        return math.fsum(self.reports)


@dataclass(frozen=True)
class LossScaling:
    """The losses of one global batch, divided on each replica and then summed.

    The model is y = 3 x. The loss of an example is |y - (2 x - 1)| unless other `examples` are given, so
    that with x = 1, 2, 3, ... the losses are 2, 3, 4, ..., and their gradients are x. `divisors` says what
    each replica divides the sum of its losses by.

    >>> losses = LossScaling(num_replicas=2, batch_size=4, num_examples=4).losses
    >>> losses.reports, losses.total, losses.mean
    ((1.25, 2.25), 3.5, 3.5)

    Source: https://www.tensorflow.org/tutorials/distribute/custom_training (Define the loss function);
    https://github.com/keras-team/keras/blob/v3.13.0/keras/src/losses/loss.py (reduce_values).
    """

    num_replicas: int
    batch_size: int
    num_examples: int
    division: str = GLOBAL
    examples: Examples = tuple((x + 1.0, float(x)) for x in range(1, 9))

    @property
    def losses(self) -> Divided:
        """The losses; `tf.reduce_mean` over no example is NaN."""
        return self._divided(0, empty=math.nan if self.division == REPLICA else 0.0)

    @property
    def gradients(self) -> Divided:
        """Their gradients, whose sum the optimizer is given; over no example 0 even where the loss is NaN."""
        return self._divided(1, empty=0.0)

    def divisors(self, own: int) -> tuple[int, ...]:
        """Returns the numbers by which a replica with so many examples divides, one after the other."""
        return {
            GLOBAL: (self.num_examples,),
            FULL: (self.batch_size,),
            REPLICA: (own,),
            KERAS: (own, self.num_replicas),
            TWICE: (own, self.num_replicas, self.num_replicas),
        }[self.division]

    def _divided(self, which: int, *, empty: float) -> Divided:
        parts = split([each[which] for each in self.examples[: self.num_examples]], self.num_replicas)
        divisors = [math.prod(self.divisors(len(part))) for part in parts]
        reports = (sum(part) / by if by else empty for part, by in zip(parts, divisors, strict=True))
        return Divided(parts, tuple(reports))


class LossScalingExplorer(Explorer):
    """Lets the reader divide the losses of a batch in five ways, and shows the gradient beside the right one.

    Args:
        num_replicas: the number of replicas shown first: 2 or 4.
        batch_size: the batch size shown first: 4 or 8.
        num_examples: how many examples the batch has at first, from 1 to the batch size.
        division: the division shown first, one of `DIVISIONS`.
        loss: a function from outputs y and targets t, 8 each, to their 8 losses; |y - t| if none is given.
    """

    name = "loss_scaling"
    title = later("Loss scaling explorer")

    def __init__(
        self,
        num_replicas: int = 2,
        batch_size: int = 4,
        num_examples: int = 4,
        division: str = GLOBAL,
        loss: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        self._scaling = partial(LossScaling, examples=_examples_of(loss)) if loss else LossScaling
        state: State = {"num_replicas": num_replicas, "batch_size": batch_size}
        state |= {"num_examples": num_examples, "division": division}
        super().__init__(state)

    def controls(self, state: State) -> Sequence[Group]:
        """Returns the numbers of replicas, the batch sizes, the examples of this batch and the divisions."""
        examples = range(1, state["batch_size"] + 1)
        divisions = [
            (GLOBAL, _("examples of this global batch")),
            (FULL, _("batch size")),
            (REPLICA, _("the replica's own examples")),
            (KERAS, _("own examples and replicas (default of Keras 3)")),
            (TWICE, _("own examples, replicas, and replicas again")),
        ]
        return [
            Group(_("Replicas"), [numbers(("num_replicas",), (2, 4))]),
            Group(_("Batch size"), [numbers(("batch_size",), (4, 8))]),
            Group(_("Examples in this batch"), [numbers(("num_examples",), examples)]),
            Group(_("Divide by"), [Choice(("division",), divisions)]),
        ]

    def settled(self, state: State) -> State:
        """Returns the state with no more examples than fit in the batch."""
        return {**state, "num_examples": min(state["num_examples"], state["batch_size"])}

    def body(self, state: State) -> Sequence[Node]:
        """Returns the code, a verdict, each replica's losses, and what comes of them beside what is right."""
        scaling, code_title = self._scaling(**state), _("Code on each replica")
        shown = scheme_image(_scheme_of(scaling), fits=True)
        results = pieces.bars(_results(scaling))
        return [
            pieces.facts({_("Model"): "y = 3 x, t = 2 x - 1"}),
            pieces.panel(code_title, region(code_title, [node("pre", _code(scaling))])),
            pieces.spoken("told", join_sentences(_sentences(scaling))),
            pieces.panels(
                [pieces.panel(_("Each replica returns"), shown), pieces.panel(_("Result"), results)]
            ),
        ]


def _examples_of(loss: Callable[[Any, Any], Any]) -> Examples:
    """Returns what a loss of the reader's own gives for y = 3 x and t = 2 x - 1, in double precision."""
    tf = start_tensorflow()
    x, weights = (tf.constant(each, tf.float64) for each in (range(1, 9), [3.0] * 8))
    with tf.GradientTape() as tape:
        tape.watch(weights)  # one for each example
        losses = tf.convert_to_tensor(loss(weights * x, 2 * x - 1))
    gradients = tape.gradient(losses, weights)
    if losses.shape != x.shape or gradients is None or not np.isfinite([losses, gradients]).all():
        raise CourseError(_("A loss for this explorer returns eight finite numbers, one for each example."))
    if not np.allclose(loss(3 * x[:5], 2 * x[:5] - 1), losses[:5], rtol=1e-9, atol=0):
        raise CourseError(_("A loss for this explorer computes each number from its own example alone."))
    return tuple(zip(losses.numpy().tolist(), gradients.numpy().tolist(), strict=True))


def _code(scaling: LossScaling) -> str:
    """Returns what a replica evaluates; `loss` is a loss of Keras with its default reduction."""
    average = "tf.nn.compute_average_loss(losses, global_batch_size={})"
    return {
        GLOBAL: average.format(scaling.num_examples),
        FULL: average.format(scaling.batch_size),
        REPLICA: "tf.reduce_mean(losses)",
        KERAS: "loss(labels, outputs)",
        TWICE: f"loss(labels, outputs) / {scaling.num_replicas}",
    }[scaling.division]


def _scheme_of(scaling: LossScaling) -> Scheme:
    """Returns each replica with what it makes of the losses of its examples."""
    names = [_("replica {number}", number=at) for at in range(scaling.num_replicas)]
    boxes = [Box(name, (Line(_calculation(scaling, at), at),)) for at, name in enumerate(names)]
    return [boxes[at : at + 2] for at in range(0, len(boxes), 2)]


def _calculation(scaling: LossScaling, replica: int) -> str:
    """Returns how a replica comes to what it returns, such as `(2 + 3) / 2 / 2 = 1.25`."""
    losses, report = scaling.losses.parts[replica], _number(scaling.losses.reports[replica])
    divisors = scaling.divisors(len(losses))
    if 0 in divisors:
        return _("mean over no example = {value}", value=report)
    added = " + ".join(map(_number, losses)) or "0"
    divided = "".join(f" / {divisor}" for divisor in divisors)
    return f"({added}){divided} = {report}" if len(losses) > 1 else f"{added}{divided} = {report}"


def _number(value: float) -> str:
    return "NaN" if math.isnan(value) else form_value(float(value))


def _results(scaling: LossScaling) -> list[Bars]:
    """Returns loss and gradient: what is right, then what comes of the division, marked where it is wrong."""
    return [_group(_("Loss"), scaling.losses), _group(_("Gradient"), scaling.gradients)]


def _group(heading: str, found: Divided) -> Bars:
    values = {_("true mean"): found.mean, _("sum of the replicas"): found.total}
    bars = [
        Bar(
            name,
            0.0 if math.isnan(value) else abs(value),
            _number(value) if _same(value, found) else f"{_number(value)} ✗",
        )
        for name, value in values.items()
    ]
    return Bars(heading, tuple(bars))


def _sentences(scaling: LossScaling) -> list[str]:
    """Returns whether loss and gradient are right."""
    losses, gradients = scaling.losses, scaling.gradients
    total, mean = map(_number, (losses.total, losses.mean))
    right = _same(losses.total, losses)
    if math.isnan(losses.total):
        loss = _("The sum is NaN: a replica without an example returned the mean over nothing.")
    elif right:
        loss = _("The sum of the replicas is the true mean, {mean}.", mean=mean)
    else:
        loss = _("The sum of the replicas is {total}, not the true mean, {mean}.", total=total, mean=mean)
    if _same(gradients.total, gradients):
        return [f"{'✓' if right else '✗'} {loss}", _("The gradient is right.")]
    told = {"found": _number(gradients.total), "right": _number(gradients.mean)}
    if _same(0, gradients):
        return [f"✗ {loss}", _("The gradient is {found}, and {right} would be right.", **told)]
    told["times"] = _number(gradients.total / gradients.mean)
    return [f"✗ {loss}", _("The gradient is {found}, {times} times the right one, {right}.", **told)]


def _same(value: float, found: Divided) -> bool:
    largest = max(abs(each) for part in found.parts for each in part)
    return math.isclose(value, found.mean, rel_tol=1e-9, abs_tol=1e-12 * largest)
