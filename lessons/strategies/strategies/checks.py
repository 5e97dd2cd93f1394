"""The exercises of this lesson: a step and an evaluation on replicas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.values import Array
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from lessons.strategies import replica_runs

Part = tuple[Array, Array]  # features and labels of one replica
Outcome = dict[str, Any]

_LEARNING_RATE, _FEATURES = 0.25, 3
_SIZES = ((2, 2), (3, 1), (1, 4), (2, 1, 2))  # of the parts of two or three replicas

_WEIGHT, _BIAS = 0.5, -1.0
_EVALUATIONS = ((2, 9, 4), (3, 13, 6))  # replicas, examples, batch size: one replica gets the last example


Divisor = Callable[[int, int], float]  # by the examples of the part, and those of all


def _stepped(
    divide_by: Divisor = lambda own, batch: batch, *, all_reduce: str = "SUM"
) -> Callable[[Array, tuple[Part, ...]], Outcome]:
    """Returns a step in NumPy, with the mistakes that are asked for."""

    def step(weight: Array, parts: tuple[Part, ...]) -> Outcome:
        count = sum(len(labels) for _features, labels in parts)
        shares, gradients = [], []
        for features, labels in parts:
            errors = features.astype(np.float64) @ weight - labels
            divisor = divide_by(len(labels), count)
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


@exercise("strategies-by-hand", right=_stepped())
def by_hand(answer: Callable[..., Any]) -> str | None:
    """A step of gradient descent as one of several replicas takes it."""
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
            _stepped(lambda own, batch: own, all_reduce="MEAN"): _(
                "This is right for equal parts. Parts may differ in size: divide by the global batch."
            ),
        },
        tolerance=1e-3,
        advice=_("Check the update's sign and rate. What is a replica's own, what comes from all of them?"),
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
    own: Any = getattr(replica_step, "__wrapped__", None)
    if hasattr(own, "python_function"):  # a `tf.function`: `run` has a way with those
        replica_step = own
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


def _loss_and_count(
    num_replicas: int, examples: Part, batch_size: int, *, times: int = 1, loss: object = None
) -> Outcome:
    """Returns the mean loss, and how many examples replicas have seen; with more arguments, a mistake's."""
    squares = np.concatenate(_squares(examples, batch_size))
    found = squares.mean() if loss is None else loss
    return {"mean_loss": found, "examples_on_replicas": times * len(squares)}


def _mean_of_parts(num_replicas: int, examples: Part, batch_size: int) -> Outcome:
    means = []
    for batch in _squares(examples, batch_size):
        size = -(-len(batch) // num_replicas)  # as TensorFlow splits a batch
        means += [np.mean(batch[at * size : (at + 1) * size]) for at in range(num_replicas)]
    return _loss_and_count(num_replicas, examples, batch_size, loss=np.mean(means))


@exercise("strategies-evaluate", right=_loss_and_count)
def evaluate(answer: Callable[..., Any]) -> str | None:
    """The mean loss over all examples of a data set, computed by two replicas and by three."""
    random = np.random.default_rng(0)
    return judge(
        answer,
        _loss_and_count,
        [_examples(random, *numbers) for numbers in _EVALUATIONS],
        run=_mean_loss_on_replicas,
        misconceptions={
            _mean_of_parts: _(
                "That is a mean of means: parts of unlike size count alike, and the mean over no example is"
                " not a number. Add up losses and counts."
            ),
            lambda *given: _loss_and_count(*given, times=given[0]): _(
                "The number is right, but all replicas computed the same examples. Split the data set first."
            ),
            lambda *given: _loss_and_count(*given, times=0): _(
                "The number is right, but it was computed outside the replicas. Use `strategy.run`."
            ),
        },
        tolerance=1e-4,
        advice=_("Add up the losses of all replicas and batches, and divide by the number of examples."),
    )


def _examples(random: np.random.Generator, num_replicas: int, count: int, size: int) -> Case:
    features, labels = random.normal(0, 2, (2, count, 1)).astype(np.float32)
    told = _(
        "{replicas} replicas, batches of {size}, examples: {count}",
        replicas=num_replicas,
        size=size,
        count=count,
    )
    return Case((num_replicas, (features, labels), size), told=told)


def _mean_loss_on_replicas(
    mean_loss: Callable[..., Any], num_replicas: int, examples: Part, batch_size: int
) -> Outcome | None:
    """Returns what the reader's function gives, if anything, and how many examples replicas have seen."""
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
        return tf.convert_to_tensor(inputs) * weight + bias

    loss = mean_loss(strategy, model, tf.data.Dataset.from_tensor_slices(examples).batch(batch_size))
    found = {"mean_loss": loss, "examples_on_replicas": sum(map(len, seen))}
    return None if loss is None else found
