"""The exercises of lesson 09 without devices; importing it registers the others."""

from __future__ import annotations

from collections import UserString
from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import drawn, judge
from course_lib.i18n import _
from lessons.lesson_09_strategies import checks_on_replicas  # noqa: F401 - it registers its exercises
from lessons.lesson_09_strategies.learning_rates import scaled_learning_rate
from lessons.lesson_09_strategies.strategy import (
    CENTRAL_STORAGE,
    MIRRORED,
    MULTI_WORKER,
    PARAMETER_SERVER,
    STRATEGIES,
)

_TEAMS = (MIRRORED, MULTI_WORKER, PARAMETER_SERVER, CENTRAL_STORAGE)
# The classes of TensorFlow whose own name is not the one under which it exports them.
_CLASSES = {"CollectiveAllReduceStrategy": MULTI_WORKER, "ParameterServerStrategyV2": PARAMETER_SERVER}


# No plain texts: so a tuple of classes reaches the function, too.
@exercise("09-choose", right=tuple(map(UserString, _TEAMS)))
def choose(answer: tuple[object, ...]) -> str | None:
    """The strategies of four teams, by name or as TensorFlow's classes."""
    hints = {
        (2, MIRRORED): _("Team 2 has three machines. This strategy is for a single machine."),
        (2, PARAMETER_SERVER): _("The machines of team 2 wait for each other in every step."),
        (3, MULTI_WORKER): _("Here every machine waits for the slowest. Team 3 wants no waiting."),
        (4, MIRRORED): _("This strategy keeps a copy on each GPU. Team 4 wants its variables only once."),
    }
    names = [_name_of(part) for part in answer]
    if len(names) != len(_TEAMS):
        return _("Give four names, in the order of the teams.")
    for team, (name, right) in enumerate(zip(names, _TEAMS, strict=True), 1):
        if name not in STRATEGIES:
            return _("There is no strategy {name!r}. Copy the name from the explorer.", name=name)
        if name != right:
            other = _("Team {team} needs another one. Give its answers to the explorer above.", team=team)
            return hints.get((team, name), other)
    return None


def _name_of(strategy: object) -> str:
    name = strategy.__name__ if isinstance(strategy, type) else str(strategy)
    return _CLASSES.get(name, name.rpartition(".")[2])


def _settings(num_replicas: int, per_replica: int, base_batch: int, base_rate: float) -> tuple[int, float]:
    global_batch = num_replicas * per_replica
    return global_batch, scaled_learning_rate(base_rate, base_batch, global_batch)


def _draw(random: np.random.Generator) -> tuple[int, int, int, float]:
    replicas, batches = int(random.integers(1, 13)), [16, 32, 48, 64, 256]
    per_replica, base_batch = (int(each) for each in random.choice(batches, 2))
    return replicas, per_replica, base_batch, float(random.choice([0.001, 0.01, 0.05, 0.1, 0.5]))


@exercise("09-settings", right=_settings)
def settings(answer: Callable[..., Any]) -> str | None:
    """The global batch and the learning rate of any number of replicas."""
    return judge(
        answer,
        _settings,
        drawn(_draw),
        tolerance=1e-8,  # of the batch, and so much less of the rate
        misconceptions={
            lambda replicas, per_replica, base_batch, base_rate: (replicas * per_replica, base_rate): _(
                "The learning rate stays as it was. The rule raises it with the batch."
            ),
            lambda replicas, per_replica, base_batch, base_rate: (
                replicas * per_replica,
                base_rate * replicas,
            ): _("The rate grows with the replicas here. But `base_batch` was not the batch of one replica."),
            lambda replicas, per_replica, base_batch, base_rate: _settings(
                1, per_replica, base_batch, base_rate
            ): _("The global batch is that of all replicas together."),
        },
        advice=_("Return two numbers, not rounded: the global batch, then the learning rate."),
    )
