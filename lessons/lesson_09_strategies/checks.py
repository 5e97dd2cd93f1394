"""The exercises of lesson 09 without devices; importing it registers those of its other modules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from course_lib.exercises.answers import plain
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import drawn, judge
from course_lib.i18n import _
from lessons.lesson_09_strategies import checks_by_hand as lesson_09_by_hand  # noqa: F401 - each registers what it holds
from lessons.lesson_09_strategies import checks_evaluate as lesson_09_evaluate  # noqa: F401 - each registers what it holds
from lessons.lesson_09_strategies.strategy import (
    CENTRAL_STORAGE,
    MIRRORED,
    MULTI_WORKER,
    ONE_DEVICE,
    PARAMETER_SERVER,
    STRATEGIES,
)

_TEAMS = (MIRRORED, MULTI_WORKER, PARAMETER_SERVER, CENTRAL_STORAGE)


def _but(team: int, name: str) -> tuple[str, ...]:
    """Returns the right answer with another name for one team, counted from 1."""
    return (*_TEAMS[: team - 1], name, *_TEAMS[team:])


@exercise(
    "09-choose",
    right=_TEAMS,
    also=[tuple(f"tf.distribute.{name}" for name in _TEAMS)],
    wrong=[
        (_but(1, MULTI_WORKER), "one machine"),
        (_but(1, CENTRAL_STORAGE), "on each GPU"),
        (_but(2, MIRRORED), "a single machine"),
        (_but(2, PARAMETER_SERVER), "wait for each other"),
        (_but(3, MULTI_WORKER), "every machine waits"),
        (_but(4, MIRRORED), "only once"),
        (_but(4, PARAMETER_SERVER), "no servers"),
        (_but(2, ONE_DEVICE), "Team 2"),
        (_but(3, "Mirrored"), "no strategy 'Mirrored'"),
        (_TEAMS[:2], "four names"),
    ],
)
def choose(answer: tuple[str, ...]) -> str | None:
    """The strategies of four teams."""
    if len(answer) != len(_TEAMS):
        return _("Give four names, in the order of the teams.")
    names = [name.rpartition(".")[2] for name in answer]
    for team, (name, right) in enumerate(zip(names, _TEAMS, strict=True), 1):
        if name not in STRATEGIES:
            return _("There is no strategy {name!r}. Copy the name from the explorer.", name=name)
        if name != right:
            return _hints(team).get(
                name,
                _("Team {team} needs another one. Give its answers to the explorer above.", team=team),
            )
    return None


def _hints(team: int) -> dict[str, str]:
    """Returns what to say of plausible wrong names."""
    return {
        1: {
            MULTI_WORKER: _("Team 1 has one machine: no other worker takes part."),
            CENTRAL_STORAGE: _("Team 1 says nothing of one place for variables: each can be on each GPU."),
        },
        2: {
            MIRRORED: _("Team 2 has three machines. This strategy is for a single machine."),
            PARAMETER_SERVER: _("The machines of team 2 wait for each other in every step."),
        },
        3: {
            MULTI_WORKER: _("Here every machine waits for the slowest. Team 3 wants no waiting."),
        },
        4: {
            MIRRORED: _("This strategy keeps a copy on each GPU. Team 4 wants its variables only once."),
            PARAMETER_SERVER: _("Team 4 has one machine and trains synchronously: it needs no servers."),
        },
    }[team]


Settings = tuple[int, float]


def _settings(num_replicas: int, per_replica: int, base_batch: int, base_rate: float) -> Settings:
    global_batch = num_replicas * per_replica
    return global_batch, base_rate * global_batch / base_batch


def _old_rate(num_replicas: int, per_replica: int, base_batch: int, base_rate: float) -> Settings:
    return num_replicas * per_replica, base_rate


def _rate_by_replicas(num_replicas: int, per_replica: int, base_batch: int, base_rate: float) -> Settings:
    return num_replicas * per_replica, base_rate * num_replicas


def _local_batch(num_replicas: int, per_replica: int, base_batch: int, base_rate: float) -> Settings:
    _batch, rate = _settings(num_replicas, per_replica, base_batch, base_rate)
    return per_replica, rate


def _all_local(num_replicas: int, per_replica: int, base_batch: int, base_rate: float) -> Settings:
    return per_replica, base_rate * per_replica / base_batch


def _inverse(num_replicas: int, per_replica: int, base_batch: int, base_rate: float) -> Settings:
    global_batch = num_replicas * per_replica
    return global_batch, base_rate * base_batch / global_batch


def _square_root(num_replicas: int, per_replica: int, base_batch: int, base_rate: float) -> Settings:
    global_batch = num_replicas * per_replica
    return global_batch, base_rate * (global_batch / base_batch) ** 0.5


def _base_batch_on_each(num_replicas: int, per_replica: int, base_batch: int, base_rate: float) -> Settings:
    return num_replicas * base_batch, base_rate * num_replicas


def _named(function: Callable[..., Any], *given: Any) -> Any:
    """Returns two numbers by their names, so that the rate is compared with a tolerance of its own size."""
    found = plain(function(*given))
    names = ("global_batch", "learning_rate")
    is_pair = isinstance(found, tuple) and len(found) == len(names)
    return dict(zip(names, found, strict=True)) if is_pair else found


def _by_name(function: Callable[..., Any]) -> Callable[..., Any]:
    return wraps(function)(partial(_named, function))


def _draw(random: np.random.Generator) -> tuple[int, int, int, float]:
    replicas, batches = int(random.integers(1, 13)), [16, 32, 48, 64, 256]
    per_replica, base_batch = (int(each) for each in random.choice(batches, 2))
    return replicas, per_replica, base_batch, float(random.choice([0.001, 0.01, 0.05, 0.1, 0.5]))


@exercise(
    "09-settings",
    right=_settings,
    also=[lambda *given: list(_settings(*given)), lambda *given: np.array(_settings(*given))],
    wrong=[
        (_old_rate, "stays as it was"),
        (_rate_by_replicas, "`base_batch` was not the batch of one replica"),
        (_local_batch, "of all replicas together"),
        (_all_local, "of all replicas together"),
        (_inverse, "grows with the batch"),
        (_square_root, "square root"),
        (_base_batch_on_each, "`per_replica` examples"),
        (lambda *given: (_settings(*given)[0], round(_settings(*given)[1], 3)), "`learning_rate`"),
        (lambda *given: _settings(*given)[::-1], "the global batch, then the learning rate"),
        (lambda *given: _settings(*given)[1], "global batch"),
        (lambda *given: None, "return"),
        (0.1, "function"),
    ],
)
def settings(answer: Callable[..., Any]) -> str | None:
    """The global batch and the learning rate of any number of replicas."""
    hints: dict[Callable[..., Any], str] = {
        _old_rate: _("The learning rate stays as it was. The rule raises it with the batch."),
        _rate_by_replicas: _(
            "The rate grows with the replicas here. But `base_batch` was not the batch of one replica."
        ),
        _local_batch: _("The global batch is that of all replicas together."),
        _all_local: _("The global batch is that of all replicas together."),
        _inverse: _("By the rule the learning rate grows with the batch. Here it falls."),
        _square_root: _("That is a rule with a square root. The linear one grows as the batch does."),
        _base_batch_on_each: _("Each replica gets `per_replica` examples, whatever `base_batch` is."),
    }
    return judge(
        answer,
        _by_name(_settings),
        drawn(_draw),
        run=_named,
        misconceptions={_by_name(mistake): hint for mistake, hint in hints.items()},
        advice=_("Return two numbers, not rounded: the global batch, then the learning rate."),
    )
