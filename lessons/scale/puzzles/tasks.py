"""What a puzzle asks, and what a choice gives: quantities of a device, their parts, and what is drawn."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from course_lib.specs.architecture import Architecture
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import BATCH, Axes
from course_lib.specs.sharding import Sharding
from course_lib.specs.step import Event
from lessons.scale.cost import Cost, Training

Choice = dict[str, Any]  # for each question, by its name, the value that was chosen


@dataclass(frozen=True)
class Question:
    """Something to choose: its name in a choice, its heading, and the values with what is shown of them."""

    name: str
    heading: str
    options: Sequence[tuple[Any, str]]


@dataclass(frozen=True)
class CutTensor:
    """Tensors that are cut alike: their names, the names of their axes, and how one of them is cut."""

    names: str
    axes: Axes
    sharding: Sharding
    count: int = 1


@dataclass(frozen=True)
class Setting:
    """A plan with stages, of a network and a batch: its mesh, how its step is taken, and what that costs."""

    network: Architecture
    batch_size: int
    mesh: MeshSpec
    training: Training
    cost: Cost


@dataclass(frozen=True)
class Found:
    """What a choice gives.

    Attributes:
        numbers: the quantities of a device.
        parts: of what some of them are made up.
        mesh: the devices that are drawn: all, or those that share one copy of the network.
        devices: their numbers.
        per_node: how many of all devices share a node; 0 where nodes do not matter.
        tensors: what they hold, of a large network without vectors.
        events: what they exchange, of a large network within a copy.
        spent_on: for each of these the seconds that one takes and whether it goes from node to node, where
            the time of a step counts.
        setting: a plan with stages.
    """

    numbers: Mapping[str, float]
    parts: Mapping[str, Mapping[str, float]]
    mesh: MeshSpec
    devices: Sequence[int]
    per_node: int = 0
    tensors: Sequence[CutTensor] = ()
    events: Sequence[Event] = ()
    spent_on: Sequence[tuple[float, bool]] = ()
    setting: Setting | None = None


class Task(ABC):
    """What is asked, and what each choice gives."""

    @abstractmethod
    def questions(self, choice: Choice) -> list[Question]:
        """Returns what there is to choose after the questions that are answered."""

    @abstractmethod
    def found(self, choice: Choice) -> Found:
        """Returns what a choice gives.

        Raises:
            CourseError: the choice is illegal.
        """

    def settled(self, choice: Choice) -> Choice:
        """Returns the choice with the first option wherever it has none that is offered."""
        offered = {each.name: [value for value, _told in each.options] for each in self.questions(choice)}
        return {
            name: choice[name] if choice.get(name) in values else values[0]
            for name, values in offered.items()
        }

    def choices(self) -> Iterator[Choice]:
        """Yields every choice."""
        first, *_others = self.questions({})
        for value, _told in first.options:
            questions = self.questions({first.name: value})[1:]
            for values in itertools.product(*([each for each, _told in one.options] for one in questions)):
                names = (one.name for one in questions)
                yield {first.name: value, **dict(zip(names, values, strict=True))}


def costs(cost: Cost) -> dict[str, float]:
    """Returns totals, rounded as they are shown, so that no choice fails by what nobody sees."""
    return {
        "memory": round(cost.total_bytes, -8),
        "seconds": round(cost.seconds, 2),
        "exchanged": round(sum(exchanged(cost).values()), 2),
        "waiting": round(100 * cost.bubble_seconds / cost.seconds, 1),
    }


def spent(cost: Cost) -> dict[str, float]:
    """Returns on what a step spends its seconds; what is exchanged has the name of its mesh dimensions."""
    parts = {"computing": cost.compute_seconds, **exchanged(cost), "waiting": cost.bubble_seconds}
    return {part: seconds for part, seconds in parts.items() if seconds}


def exchanged(cost: Cost) -> dict[str, float]:
    """Returns the seconds of a step's exchanges, by their mesh dimensions, where there are any."""
    return {over: seconds for over, seconds in cost.communication_seconds.items() if seconds}


@cache
def one_copy(mesh: MeshSpec) -> tuple[int, ...]:
    """Returns the devices that share the first copy of the network.

    >>> one_copy(MeshSpec([("model", 2), ("batch", 4)]))
    (0, 4)
    """
    return tuple(device for device in range(mesh.size) if not mesh.coords(device).get(BATCH))
