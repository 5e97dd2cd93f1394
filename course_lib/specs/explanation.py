"""What devices were predicted to exchange, beside what TensorFlow really ran."""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.specs.collectives import Collective
from course_lib.specs.communication import Communication, Step
from course_lib.specs.drawing import DrawsItself
from course_lib.specs.layout import LayoutSpec


@dataclass(frozen=True)
class Pair:
    """A step of the prediction beside the collective that ran in its place.

    Attributes:
        step: what was predicted; None where a collective ran that nobody predicted.
        expected: the collective that is to run for the step, or None where it needs none.
        observed: the collective that ran, or None.
    """

    step: Step | None
    expected: Collective | None
    observed: Collective | None

    @property
    def agrees(self) -> bool:
        """Whether the collective that ran is the expected one."""
        return self.expected == self.observed


@dataclass(frozen=True)
class Explanation(DrawsItself):
    """A predicted communication beside the observed one. It draws itself.

    Attributes:
        predicted: what the rules say.
        observed: the collectives that TensorFlow ran, in order.
        layout: the layout that the result really has.
        values_agree: whether the result equals NumPy's.
    """

    predicted: Communication
    observed: tuple[Collective, ...]
    layout: LayoutSpec
    values_agree: bool = True

    @property
    def expected(self) -> tuple[Collective, ...]:
        """The predicted collectives as TensorFlow runs them, in order."""
        return tuple(each.as_run() for each in self.predicted.collectives)

    @property
    def agrees(self) -> bool:
        """Whether collectives, layout and values are the predicted ones."""
        same_layout = self.layout == self.predicted.result.layout
        return self.observed == self.expected and same_layout and self.values_agree

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Each predicted step with the collective that ran in its place; then those that ran besides."""
        ran = iter(self.observed)
        pairs = []
        for step in self.predicted.steps:
            expected = None if step.collective is None else step.collective.as_run()
            pairs.append(Pair(step, expected, None if expected is None else next(ran, None)))
        return (*pairs, *(Pair(None, None, besides) for besides in ran))
