"""What the programs of this lesson printed, as numbers."""

from __future__ import annotations

from typing import NamedTuple

from lessons.strategies.report import TaskReport


class Update(NamedTuple):
    """An update of the weight.

    Attributes:
        number: which update it was, from 1.
        worker: whose gradient it was.
        staleness: how many updates came in between the pull and the push.
        w: the weight after it.
    """

    number: int
    worker: int
    staleness: int
    w: float


class Epoch(NamedTuple):
    """An epoch of the coordinator.

    Attributes:
        number: which epoch it was, from 1.
        loss: its mean loss.
        updates: how many updates there have been from the beginning of the training to its end.
    """

    number: int
    loss: float
    updates: int


def seconds(task: TaskReport) -> float:
    """Returns how long the steps of a task took, by its line "seconds 3.051".

    >>> seconds(TaskReport("worker 0", ("step 1 w 4.000", "seconds 3.051")))
    3.051
    """
    (found,) = (line.split()[1] for line in task.lines if line.startswith("seconds "))
    return float(found)


def updates(task: TaskReport) -> list[Update]:
    """Returns the updates that a task printed, in their order.

    >>> updates(TaskReport("chief 0", ("update 2 1 1 0.000", "update 1 0 0 4.000")))[0]
    Update(number=1, worker=0, staleness=0, w=4.0)
    """
    found = (line.split()[1:] for line in task.lines if line.startswith("update "))
    return sorted(Update(int(number), int(by), int(age), float(w)) for number, by, age, w in found)


def epochs(task: TaskReport) -> list[Epoch]:
    """Returns the epochs that a coordinator printed.

    >>> epochs(TaskReport("chief 0", ("W2 (16, 4) on server 0", "epoch 1 loss 2.014 updates 5")))
    [Epoch(number=1, loss=2.014, updates=5)]
    """
    words = (line.split() for line in task.lines if line.startswith("epoch "))
    return [Epoch(int(each[1]), float(each[3]), int(each[5])) for each in words]
