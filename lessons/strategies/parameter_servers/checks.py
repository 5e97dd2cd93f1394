"""The exercise of this lesson: an epoch that a coordinator hands out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from itertools import groupby
from types import SimpleNamespace
from typing import Any

from course_lib.errors import CourseError
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow

Outcome = dict[str, Any]
_ARGS = "`args=(iterator,)`"


class _Coordinator:
    """What the reader's function gets instead of TensorFlow's coordinator: it notes what happens when."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.steps: list[Any] = []

    def schedule(self, fn: Any, args: Any = (), kwargs: Any = None) -> Any:
        if fn != self.train_step:
            raise CourseError(
                _("`schedule` takes `train_step` itself, its arguments apart: {args}", args=_ARGS)
            )
        if not isinstance(args, (list, tuple)):
            raise CourseError(_("A step needs the iterator: {args}", args=_ARGS))
        self.events.append("schedule")
        step = cache(partial(fn, *args, **(kwargs or {})))
        self.steps.append(step)
        return SimpleNamespace(fetch=step, get=step)

    def join(self) -> None:
        for step in self.steps:
            step()

    def done(self) -> bool:
        """Answers like a busy queue: each time that it is asked, one more step has been done."""
        waiting = [step for step in self.steps if not step.cache_info().currsize]
        for step in waiting[:1]:
            step()
        return not waiting

    def fetch(self, steps: Any) -> Any:
        if isinstance(steps, dict):
            return {name: step.fetch() for name, step in steps.items()}
        return [step.fetch() for step in steps] if isinstance(steps, (list, tuple)) else steps.fetch()

    def train_step(self, iterator: str = "") -> float:
        if iterator != "iterator":
            raise CourseError(_("A step needs the iterator: {args}", args=_ARGS))
        self.events.append("step")
        return float(self.events.count("step") ** 2)


def _epoch(num_steps: int, order: str = "{n} × schedule, {n} × step, 1 × save") -> Outcome:
    loss = sum(at**2 for at in range(1, num_steps + 1)) / num_steps
    return {"what happens": order.format(n=num_steps), "mean loss": loss}


def _of_readers(run_epoch: Callable[..., Any], num_steps: int) -> Outcome:
    stand_in = _Coordinator()
    save = partial(stand_in.events.append, "save")
    loss = run_epoch(stand_in, stand_in.train_step, "iterator", num_steps, save)
    happened = ", ".join(f"{len(list(same))} × {event}" for event, same in groupby(stand_in.events))
    return {"what happens": happened, "mean loss": loss}


@exercise("parameter_servers-epoch", right=_epoch)
def epoch(answer: Callable[..., Any]) -> str | None:
    """An epoch of steps that are handed out all at once, with a checkpoint at its end."""
    if "tensorflow" in sys.modules:
        start_tensorflow()  # or a reader's `tf.reduce_mean` starts it, with one device
    alone = "1 × schedule, 1 × step, "
    misconceptions: dict[Callable[..., Any], str] = {
        lambda count: _epoch(count, alone * count + "1 × save"): _(
            "You wait for a step before you schedule the next one, so that only one worker is ever busy."
            " Schedule all of them first."
        ),
        partial(_epoch, order="{n} × schedule, 1 × save, {n} × step"): _(
            "You save before the steps are done. Who waits for them?"
        ),
    }
    cases = [Case((count,), told=_("steps: {count}", count=count)) for count in (5, 8)]
    advice = _("Schedule all steps, wait for them, save once, and fetch the losses: `step.fetch()` for each.")
    return judge(answer, _epoch, cases, run=_of_readers, misconceptions=misconceptions, advice=advice)
