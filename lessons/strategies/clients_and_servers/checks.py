"""The exercises of this lesson: an epoch that a coordinator hands out, and the components of one client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import groupby, product
from types import SimpleNamespace
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.values import Array
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow

SIZES = {"batch": 4, "model": 2}
WHOLE = "unsharded"  # the value of DTensor's UNSHARDED
Outcome = dict[str, Any]
_ARGS = "`args=(iterator,)`"


class _Coordinator:
    """What the reader's function gets in place of TensorFlow's coordinator: it notes what happens when."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.steps: list[Callable[[], Any]] = []

    def schedule(self, function: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function != self.train_step:
            raise CourseError(
                _("`schedule` takes `train_step` itself, its arguments apart: {args}", args=_ARGS)
            )
        self.events.append("schedule")
        step = cache(partial(function, *args, **(kwargs or {})))
        self.steps.append(step)
        return SimpleNamespace(fetch=step, get=step)

    def join(self) -> None:
        for step in self.steps:
            step()

    def done(self) -> bool:
        self.join()
        return True

    def fetch(self, steps: Any) -> Any:
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


@exercise("clients_and_servers-epoch", right=_epoch)
def epoch(answer: Callable[..., Any]) -> str | None:
    """An epoch of steps that are handed out all at once, with a checkpoint at its end."""
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


def mesh_of_client(client: int) -> Any:
    """Returns the mesh of eight devices as client 0 or 1 sees it. Nothing is computed on it."""
    dtensor = start_tensorflow().experimental.dtensor
    names = [f"/job:client/replica:0/task:{at // 4}/device:CPU:{at % 4}" for at in range(8)]
    own = list(range(4 * client, 4 * client + 4))
    ids = np.arange(8).reshape(4, 2)
    return dtensor.Mesh(list(SIZES), ids, own, [names[at] for at in own], global_devices=names)


def _mine(array: Array, specs: Sequence[str], client: int, axes: int = 2, every: int = 4) -> list[Array]:
    parts = []
    for device in range(every * client, every * client + every):
        place = {"batch": device // 2, "model": device % 2}
        part = array
        for axis, name in enumerate(specs[:axes]):
            part = part if name == WHOLE else np.split(part, SIZES[name], axis)[place[name]]
        parts.append(part)
    return parts


@exercise("clients_and_servers-mine", right=_mine)
def mine(answer: Callable[..., Any]) -> str | None:
    """The components that one client of a mesh makes."""
    both = [[WHOLE, WHOLE], ["batch", WHOLE], [WHOLE, "model"], ["model", "batch"], ["batch", "model"]]
    cases = []
    for specs, client in product([*both, ["batch"], ["model"]], range(2)):
        array = np.arange(32).reshape(8, 4) if len(specs) == 2 else np.arange(8)
        told = _("client {client}, layout {specs}", client=client, specs=specs)
        cases.append(Case((array, specs, client), told=told))
    misconceptions: dict[Callable[..., Any], str] = {
        lambda array, specs, _client: _mine(array, specs, 0, every=8): _(
            "You make components for all eight devices. A client makes those of its own devices:"
            " `layout.mesh.local_device_locations()`."
        ),
        lambda array, specs, _client: _mine(array, specs, 0): _(
            "That is right for client 0 alone. Where in the mesh do the devices of client 1 stand?"
        ),
        partial(_mine, axes=1): _("You cut the first axis only: `layout.sharding_specs` has all."),
    }
    advice = _("For one device: which mesh dimension cuts each axis, and where does it stand there?")
    return judge(answer, _mine, cases, run=_components, misconceptions=misconceptions, advice=advice)


def _components(answer: Callable[..., Any], array: Array, specs: Sequence[str], client: int) -> Any:
    layout = start_tensorflow().experimental.dtensor.Layout(list(specs), mesh_of_client(client))
    found = answer(array, layout)
    if not isinstance(found, (list, tuple)):
        raise CourseError(_("Return a list: a component for each device of the client."))
    return list(found)
