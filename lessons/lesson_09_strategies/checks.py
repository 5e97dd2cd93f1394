"""The exercises of lesson 09: strategies, settings, and a step and an evaluation on replicas."""

from __future__ import annotations

from collections import UserString
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises import replica_runs
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from lessons.lesson_09_strategies.learning_rates import scaled_learning_rate
from lessons.lesson_09_strategies.strategy import (
    CENTRAL_STORAGE,
    MIRRORED,
    MULTI_WORKER,
    PARAMETER_SERVER,
    STRATEGIES,
)

Array = npt.NDArray[Any]
Part = tuple[Array, Array]  # features and labels of one replica
Outcome = dict[str, Any]

_TEAMS = (MIRRORED, MULTI_WORKER, PARAMETER_SERVER, CENTRAL_STORAGE)
# The classes of TensorFlow whose own name is not the one under which it exports them.
_CLASSES = {"CollectiveAllReduceStrategy": MULTI_WORKER, "ParameterServerStrategyV2": PARAMETER_SERVER}
_LEARNING_RATE, _FEATURES = 0.25, 3
_SIZES = ((2, 2), (3, 1), (1, 4), (2, 1, 2))  # of the parts of two or three replicas

_WEIGHT, _BIAS = 0.5, -1.0
_EVALUATIONS = ((2, 9, 4), (3, 13, 6))  # replicas, examples, batch size: one replica gets the last example


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


def _stepped(
    *, all_reduce: str = "SUM", by_part: bool = False
) -> Callable[[Array, tuple[Part, ...]], Outcome]:
    """Returns a step in NumPy, with the mistakes that are asked for."""

    def step(weight: Array, parts: tuple[Part, ...]) -> Outcome:
        count = sum(len(labels) for _features, labels in parts)
        shares, gradients = [], []
        for features, labels in parts:
            errors, divisor = features.astype(np.float64) @ weight - labels, len(labels) if by_part else count
            shares.append(float(np.sum(errors**2) / divisor))
            gradients.append(2 * features.T @ errors / divisor)
        combined = np.sum(gradients, axis=0) / (len(parts) if all_reduce == "MEAN" else 1)
        used = [combined] * len(parts) if all_reduce else gradients
        return _outcome([weight - _LEARNING_RATE * gradient for gradient in used], shares)

    return step


def _outcome(copies: list[Any], shares: list[float]) -> Outcome:
    return {
        **{f"copies[{at}]": np.asarray(copy) for at, copy in enumerate(copies)},
        "shares": np.array(shares),
    }


@exercise("09-by-hand", right=_stepped(), on_devices=True)
def by_hand(answer: Callable[..., Any]) -> str | None:
    """A step of gradient descent as one of several replicas takes it."""
    replica_runs.require_devices(max(map(len, _SIZES)))
    random = np.random.default_rng(0)
    return judge(
        answer,
        _stepped(),
        [_case(random, sizes) for sizes in _SIZES],
        run=_step_on_replicas,
        misconceptions={
            _stepped(all_reduce=""): _(
                "Each replica uses its own gradient here, and the copies drift apart. Combine the gradients"
                " first."
            ),
            _stepped(all_reduce="MEAN"): _(
                "The steps are too small. The losses are divided by the global batch already: what combines"
                " their gradients?"
            ),
            _stepped(by_part=True): _("Each replica divides by the examples of its own part here."),
            _stepped(by_part=True, all_reduce="MEAN"): _(
                "This is right for equal parts. Parts may differ in size: divide by the global batch."
            ),
        },
        tolerance=1e-3,
        advice=_("What can a replica compute from its own part, and what must come from all of them?"),
    )


def _case(random: np.random.Generator, sizes: tuple[int, ...]) -> Case:
    weight = random.normal(size=_FEATURES).astype(np.float32)
    parts = tuple(
        (np.float32(random.normal(size=(size, _FEATURES))), np.float32(random.normal(size=size)))
        for size in sizes
    )
    told = _("examples on each replica: {sizes}", sizes=_(", ").join(map(str, sizes)))
    return Case((weight, parts), told=told)


def _step_on_replicas(replica_step: Callable[..., Any], weight: Array, parts: tuple[Part, ...]) -> Outcome:
    count = sum(len(labels) for _features, labels in parts)
    tf, strategy = start_tensorflow(), replica_runs.replicas(len(parts))
    with strategy.scope():
        variable = tf.Variable(weight)
    features, labels = (replica_runs.sent(strategy, kind) for kind in zip(*parts, strict=True))
    returned = strategy.run(replica_step, args=(variable, features, labels, _LEARNING_RATE, count))
    copies = [copy.numpy() for copy in strategy.experimental_local_results(variable)]
    return _outcome(copies, replica_runs.numbers(strategy, returned))


def _squares(examples: Part, batch_size: int) -> list[Array]:
    """Returns the squared errors of each batch."""
    features, labels = examples
    squares = (features.astype(np.float64) * _WEIGHT + _BIAS - labels) ** 2
    return [squares[start : start + batch_size] for start in range(0, len(squares), batch_size)]


def _mean(num_replicas: int, examples: Part, batch_size: int) -> float:
    return float(np.concatenate(_squares(examples, batch_size)).mean())


def _mean_of_parts(num_replicas: int, examples: Part, batch_size: int) -> float:
    means = []
    for batch in _squares(examples, batch_size):
        size = -(-len(batch) // num_replicas)  # as TensorFlow splits a batch
        means += [np.mean(batch[at * size : (at + 1) * size]) for at in range(num_replicas)]
    return float(np.mean(means))


@exercise("09-evaluate", right=_mean, on_devices=True)
def evaluate(answer: Callable[..., Any]) -> str | None:
    """The mean loss over all examples of a data set, computed by two replicas and by three."""
    replica_runs.require_devices(max(replicas for replicas, _count, _size in _EVALUATIONS))
    random, noted = np.random.default_rng(0), set[str]()
    hint = judge(
        answer,
        _mean,
        [_evaluation(random, *numbers) for numbers in _EVALUATIONS],
        run=partial(_evaluated_on_replicas, noted),
        misconceptions={
            _mean_of_parts: _(
                "That is a mean of means: parts of unlike size count alike, and the mean over no example is"
                " not a number. Add up losses and counts."
            ),
            lambda num_replicas, examples, batch_size: sum(map(np.sum, _squares(examples, batch_size))): _(
                "That is a sum over the examples. Divide it by how many there are."
            ),
        },
        tolerance=1e-4,
        advice=_("Add up the losses of all replicas and batches, and divide by the number of examples."),
    )
    if hint is None and "twice" in noted:
        return _(
            "The number is right, but all replicas computed the same examples. Split the data set first."
        )
    if hint is None and "elsewhere" in noted:
        return _("The number is right, but it was computed outside the replicas. Use `strategy.run`.")
    return hint


def _evaluation(random: np.random.Generator, num_replicas: int, count: int, size: int) -> Case:
    features, labels = random.normal(0, 2, (2, count, 1)).astype(np.float32)
    told = _(
        "{replicas} replicas, batches of {size}, examples: {count}",
        replicas=num_replicas,
        size=size,
        count=count,
    )
    return Case((num_replicas, (features, labels), size), told=told)


def _evaluated_on_replicas(
    noted: set[str], mean_loss: Callable[..., Any], num_replicas: int, examples: Part, batch_size: int
) -> object:
    """Returns what the reader's function gives.

    Notes whether the model was called "elsewhere" than on replicas, and given an example "twice".
    """
    tf, strategy = start_tensorflow(), replica_runs.replicas(num_replicas)
    with strategy.scope():
        weight, bias = tf.Variable(_WEIGHT), tf.Variable(_BIAS)
    seen: list[set[float]] = [set() for _replica in range(num_replicas)]

    def note(replica: Any, inputs: Array) -> None:
        seen[int(replica)].update(inputs.ravel().tolist())

    def model(inputs: Any, training: bool = False) -> Any:
        del training
        context = tf.distribute.get_replica_context()
        if context is not None and context.strategy is strategy:
            tf.numpy_function(note, [context.replica_id_in_sync_group, inputs], [])
        else:
            noted.add("elsewhere")
        return tf.convert_to_tensor(inputs) * weight + bias

    loss = mean_loss(strategy, model, tf.data.Dataset.from_tensor_slices(examples).batch(batch_size))
    if sum(map(len, seen)) > len(set.union(*seen)):
        noted.add("twice")
    return loss
