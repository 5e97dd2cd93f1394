"""The loss scaling explorer: choose replicas, examples and a division, and see which gradient follows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from course_lib.i18n import _, join_sentences, later
from course_lib.pictures.bars import Bar, Bars
from course_lib.pictures.shapes import Node, node
from course_lib.pictures.text import form_value
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Choice, Group, State, numbers
from course_lib.widgets.listings import region
from lessons.strategies.boxes import Box, Line, Scheme, scheme_image
from lessons.strategies.global_batches import split

DIVISIONS = GLOBAL, FULL, REPLICA, KERAS, TWICE = ("global", "full", "replica", "keras", "twice")


@dataclass(frozen=True)
class LossScaling:
    """The losses of one global batch, divided on each replica and then summed.

    The model is y = 3 x. The loss of an example is |y - (2 x - 1)|, so that with x = 1, 2, 3, ... the losses
    are 2, 3, 4, ..., and their gradients are x. What each replica divides the sum of its losses by, and
    where the sum over the replicas then is the mean of all losses:

    | division    | divides by                                      | right                      |
    | ----------- | ----------------------------------------------- | -------------------------- |
    | `"global"`  | the number of examples in this global batch     | always                     |
    | `"full"`    | the batch size                                  | if the batch is full       |
    | `"replica"` | the number of the replica's own examples        | on one replica             |
    | `"keras"`   | that, and the number of replicas                | if the parts are equal     |
    | `"twice"`   | that, and the number of replicas once more      | on one replica             |

    >>> scaling = LossScaling(num_replicas=2, batch_size=4, num_examples=4)
    >>> scaling.reports, scaling.total, scaling.mean, scaling.gradient
    ((1.25, 2.25), 3.5, 3.5, 2.5)

    Source: https://www.tensorflow.org/tutorials/distribute/custom_training (Define the loss function);
    https://github.com/keras-team/keras/blob/v3.13.0/keras/src/losses/loss.py (reduce_values).
    """

    num_replicas: int
    batch_size: int
    num_examples: int
    division: str = GLOBAL

    @property
    def gradients(self) -> tuple[tuple[float, ...], ...]:
        """The gradient of each example's loss with respect to the weight, replica by replica."""
        return split([float(x) for x in range(1, self.num_examples + 1)], self.num_replicas)

    @property
    def losses(self) -> tuple[tuple[float, ...], ...]:
        """The loss of each example, replica by replica; a replica may have none."""
        return split([x + 1.0 for x in range(1, self.num_examples + 1)], self.num_replicas)

    @property
    def mean(self) -> float:
        """The true mean of all losses."""
        return sum(map(sum, self.losses)) / self.num_examples

    @property
    def true_gradient(self) -> float:
        """The gradient of the true mean."""
        return sum(map(sum, self.gradients)) / self.num_examples

    @property
    def reports(self) -> tuple[float, ...]:
        """What each replica returns; `tf.reduce_mean` over no example is NaN."""
        return tuple(self._divided(self.losses, empty=math.nan if self.division == REPLICA else 0.0))

    @property
    def gradient_reports(self) -> tuple[float, ...]:
        """The gradient on each replica; over no example it is 0 even where the loss is NaN."""
        return tuple(self._divided(self.gradients, empty=0.0))

    @property
    def total(self) -> float:
        """The sum over the replicas of what they return."""
        return math.fsum(self.reports)

    @property
    def gradient(self) -> float:
        """The sum over the replicas of their gradients: what the optimizer is given."""
        return math.fsum(self.gradient_reports)

    def divisors(self, own: int) -> tuple[int, ...]:
        """Returns the numbers by which a replica with so many examples divides, one after the other."""
        return {
            GLOBAL: (self.num_examples,),
            FULL: (self.batch_size,),
            REPLICA: (own,),
            KERAS: (own, self.num_replicas),
            TWICE: (own, self.num_replicas, self.num_replicas),
        }[self.division]

    def _divided(self, parts: tuple[tuple[float, ...], ...], *, empty: float) -> Iterator[float]:
        for part in parts:
            divisors = self.divisors(len(part))
            yield sum(part) / math.prod(divisors) if 0 not in divisors else empty


class LossScalingExplorer(Explorer):
    """Lets the reader divide the losses of a batch in five ways, and shows the gradient beside the right one.

    Args:
        num_replicas: the number of replicas shown first: 2 or 4.
        batch_size: the batch size shown first: 4 or 8.
        num_examples: how many examples the batch has at first, from 1 to the batch size.
        division: the division shown first, one of `DIVISIONS`.
    """

    name = "loss_scaling"
    title = later("Loss scaling explorer")

    def __init__(
        self,
        num_replicas: int = 2,
        batch_size: int = 4,
        num_examples: int = 4,
        division: str = GLOBAL,
    ) -> None:
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
        scaling, code_title = LossScaling(**state), _("Code on each replica")
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
    losses, report = scaling.losses[replica], _number(scaling.reports[replica])
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
    mean, total = _("true mean"), _("sum of the replicas")
    loss = {mean: scaling.mean, total: scaling.total}
    gradient = {mean: scaling.true_gradient, total: scaling.gradient}
    return [_group(_("Loss"), loss), _group(_("Gradient"), gradient)]


def _group(heading: str, values: dict[str, float]) -> Bars:
    right = next(iter(values.values()))
    bars = [
        Bar(
            name,
            0.0 if math.isnan(value) else value,
            _number(value) if math.isclose(value, right) else f"{_number(value)} ✗",
        )
        for name, value in values.items()
    ]
    return Bars(heading, tuple(bars))


def _sentences(scaling: LossScaling) -> list[str]:
    """Returns whether loss and gradient are right."""
    total, mean = map(_number, (scaling.total, scaling.mean))
    if math.isnan(scaling.total):
        loss = _("The sum is NaN: a replica without an example returned the mean over nothing.")
    elif math.isclose(scaling.total, scaling.mean):
        loss = _("The sum of the replicas is the true mean, {mean}.", mean=mean)
    else:
        loss = _("The sum of the replicas is {total}, not the true mean, {mean}.", total=total, mean=mean)
    if not math.isclose(scaling.gradient, scaling.true_gradient):
        wrong = _(
            "The gradient is {found}, {times} times the right one, {right}.",
            found=_number(scaling.gradient),
            times=_number(scaling.gradient / scaling.true_gradient),
            right=_number(scaling.true_gradient),
        )
        return [f"✗ {loss}", wrong]
    mark = "✓" if math.isclose(scaling.total, scaling.mean) else "✗"
    return [f"{mark} {loss}", _("The gradient is right.")]
