"""Exercise 09-evaluate: a mean over all examples that replicas compute, held against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.exercises.answers import answered, is_number, plain
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.real_devices import on_devices
from course_lib.exercises.replica_runs import require_devices
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow

Array = npt.NDArray[Any]
Reference = Callable[[Array, Array, int], float]

_REPLICAS, _WEIGHT, _BIAS = 2, 0.5, -1.0
_COUNT, _BATCH_SIZE = 9, 4  # of the last batch one replica gets the only example


@dataclass
class _Noted:
    """What was seen of the calls of the model.

    Attributes:
        on_replicas: for each call, whether a replica made it.
        twice: whether several replicas were given the same example.
        idle: whether a replica was given none.
    """

    on_replicas: list[bool] = field(default_factory=list)
    twice: bool = False
    idle: bool = False


def _parts(features: Array, labels: Array, batch_size: int) -> list[list[Array]]:
    """Returns the squared errors of each batch, a part for each replica, as TensorFlow splits a batch."""
    squares = (features.astype(np.float64) * _WEIGHT + _BIAS - labels) ** 2
    batches = [squares[start : start + batch_size] for start in range(0, len(squares), batch_size)]
    return [[batch[: -(-len(batch) // _REPLICAS)], batch[-(-len(batch) // _REPLICAS) :]] for batch in batches]


def _mean(part: Array) -> float:
    return float(part.sum() / len(part)) if len(part) else float("nan")


def _right(features: Array, labels: Array, batch_size: int) -> float:
    return _mean(np.concatenate([part for batch in _parts(features, labels, batch_size) for part in batch]))


def _mean_of_parts(features: Array, labels: Array, batch_size: int) -> float:
    parts = [_mean(part) for batch in _parts(features, labels, batch_size) for part in batch]
    return float(np.mean(parts))


def _mean_of_batches(features: Array, labels: Array, batch_size: int) -> float:
    return float(np.mean([_mean(np.concatenate(batch)) for batch in _parts(features, labels, batch_size)]))


def _sum(features: Array, labels: Array, batch_size: int) -> float:
    return _right(features, labels, batch_size) * len(features)


def _last_batch(features: Array, labels: Array, batch_size: int) -> float:
    return _mean(np.concatenate(_parts(features, labels, batch_size)[-1]))


def _full_batches(features: Array, labels: Array, batch_size: int) -> float:
    num_batches = len(_parts(features, labels, batch_size))
    return _sum(features, labels, batch_size) / (num_batches * batch_size)


def _first_replica(features: Array, labels: Array, batch_size: int) -> float:
    return _mean(np.concatenate([batch[0] for batch in _parts(features, labels, batch_size)]))


def _sums(strategy: Any, model: Any, dataset: Any, *, split: bool = True) -> list[tuple[Any, Any]]:
    """Returns the sum of the squared errors and the number of examples of each batch and replica."""
    tf = start_tensorflow()

    def on_replica(features: Any, labels: Any) -> Any:
        squares = tf.square(model(features) - labels)
        return tf.reduce_sum(squares), tf.size(squares)

    batches = strategy.experimental_distribute_dataset(dataset) if split else dataset
    return [strategy.run(on_replica, args=batch) for batch in batches]


def _total(strategy: Any, values: Any) -> float:
    return float(strategy.reduce("SUM", values, axis=None))


def _mean_loss(strategy: Any, model: Any, dataset: Any) -> float:
    sums = _sums(strategy, model, dataset)
    return sum(_total(strategy, loss) for loss, _n in sums) / sum(_total(strategy, n) for _loss, n in sums)


def _in_lists(strategy: Any, model: Any, dataset: Any) -> float:
    """Returns the same from what each replica has, without `reduce`."""
    losses, counts = [], []
    for loss, count in _sums(strategy, model, dataset):
        losses += [float(each) for each in strategy.experimental_local_results(loss)]
        counts += [int(each) for each in strategy.experimental_local_results(count)]
    return sum(losses) / sum(counts)


def _by_axis(strategy: Any, model: Any, dataset: Any) -> float:
    """Returns the same from losses per example, which `reduce` averages over all examples of a batch."""
    tf = start_tensorflow()
    means, counts = [], []
    for features, labels in strategy.experimental_distribute_dataset(dataset):
        squares = strategy.run(lambda x, y: tf.square(model(x) - y)[:, 0], args=(features, labels))
        means.append(float(strategy.reduce("MEAN", squares, axis=0)))
        counts.append(sum(len(each) for each in strategy.experimental_local_results(squares)))
    return float(np.average(means, weights=counts))


def _averaging(strategy: Any, model: Any, dataset: Any) -> float:
    """Returns the mean of the means of all parts."""
    tf = start_tensorflow()
    means = [
        float(each)
        for batch in strategy.experimental_distribute_dataset(dataset)
        for each in strategy.experimental_local_results(
            strategy.run(lambda x, y: tf.reduce_mean(tf.square(model(x) - y)), args=batch)
        )
    ]
    return float(np.mean(means))


def _averaging_batches(strategy: Any, model: Any, dataset: Any) -> float:
    sums = _sums(strategy, model, dataset)
    return float(np.mean([_total(strategy, loss) / _total(strategy, count) for loss, count in sums]))


def _only_the_last(strategy: Any, model: Any, dataset: Any) -> float:
    loss, count = _sums(strategy, model, dataset)[-1]
    return _total(strategy, loss) / _total(strategy, count)


def _without_dividing(strategy: Any, model: Any, dataset: Any) -> float:
    return sum(_total(strategy, loss) for loss, _count in _sums(strategy, model, dataset))


def _as_if_full(strategy: Any, model: Any, dataset: Any) -> float:
    sums, batch_size = _sums(strategy, model, dataset), len(next(iter(dataset))[0])
    return sum(_total(strategy, loss) for loss, _count in sums) / (len(sums) * batch_size)


def _of_one_replica(strategy: Any, model: Any, dataset: Any) -> float:
    sums = [
        [float(strategy.experimental_local_results(each)[0]) for each in both]
        for both in _sums(strategy, model, dataset)
    ]
    return sum(loss for loss, _count in sums) / sum(count for _loss, count in sums)


def _on_one_device(strategy: Any, model: Any, dataset: Any) -> float:
    squares = [(np.asarray(model(features)) - labels.numpy()) ** 2 for features, labels in dataset]
    return float(np.concatenate(squares).mean())


def _not_split(strategy: Any, model: Any, dataset: Any) -> float:
    """Gives every replica all of each batch: losses and counts are both twice too large."""
    sums = _sums(strategy, model, dataset, split=False)
    return sum(_total(strategy, loss) for loss, _n in sums) / sum(_total(strategy, n) for _loss, n in sums)


def _by_the_first_alone(strategy: Any, model: Any, dataset: Any) -> float:
    """Lets the first replica compute all of each batch, while the others wait."""
    tf, total, count = start_tensorflow(), 0.0, 0

    def on_replica(features: Any, labels: Any) -> Any:
        if int(tf.distribute.get_replica_context().replica_id_in_sync_group):
            return tf.constant(0.0)
        return tf.reduce_sum(tf.square(model(features) - labels))

    for features, labels in dataset:
        total += _total(strategy, strategy.run(on_replica, args=(features, labels)))
        count += len(labels)
    return total / count


def _not_reduced(strategy: Any, model: Any, dataset: Any) -> Any:
    return _sums(strategy, model, dataset)[0][0]


@exercise(
    "09-evaluate",
    right=_mean_loss,
    also=[_in_lists, _by_axis],
    wrong=[
        (_averaging, "no example"),
        (_averaging_batches, "as heavily as a full one"),
        (_only_the_last, "last batch alone"),
        (_without_dividing, "a sum over the examples"),
        (_as_if_full, "as if every batch were full"),
        (_of_one_replica, "first replica got"),
        (_on_one_device, "outside the replicas"),
        (_not_split, "the same examples"),
        (_by_the_first_alone, "computed nothing"),
        (_not_reduced, "one number"),
        (lambda strategy, model, dataset: None, "one number"),
        (0.5, "function"),
    ],
    on_devices=True,
)
def evaluate(answer: Callable[..., Any]) -> str | None:
    """The mean loss over all examples of a data set, computed by two replicas."""
    require_devices(_REPLICAS)
    random = np.random.default_rng(0)
    noted = _Noted()

    def run(mean_loss: Callable[..., Any], features: Array, labels: Array, batch_size: int) -> Any:
        return _on_replicas(mean_loss, features, labels, batch_size, noted)

    hint = judge(
        answer,
        _right,
        [_case(random)],
        run=run,
        misconceptions={
            _mean_of_parts: _(
                "That is a mean of means: parts of unlike size count alike, and the mean over no example is"
                " not a number. Add up losses and counts."
            ),
            _mean_of_batches: _("Here a smaller last batch counts as heavily as a full one."),
            _last_batch: _("That is the mean of the last batch alone."),
            _sum: _("That is a sum over the examples. Divide it by how many there are."),
            _full_batches: _("This divides as if every batch were full. How many examples were there?"),
            _first_replica: _("That is the mean over what the first replica got. Combine all of them."),
        },
        tolerance=1e-4,
        advice=_("Add up the losses of all replicas and batches, and divide by the number of examples."),
    )
    if hint is None and noted.twice:
        return _(
            "The number is right, but all replicas computed the same examples. Split the data set first."
        )
    if hint is None and not all(noted.on_replicas):
        return _("The number is right, but it was computed outside the replicas. Use `strategy.run`.")
    if hint is None and noted.idle:
        return _("The number is right, but a replica computed nothing. Split every batch among all of them.")
    return hint


def _case(random: np.random.Generator) -> Case:
    features, labels = random.normal(0, 2, (2, _COUNT, 1)).astype(np.float32)
    told = _("two replicas, batches of {size}, examples: {count}", count=_COUNT, size=_BATCH_SIZE)
    return Case((features, labels, _BATCH_SIZE), told=told)


def _on_replicas(
    mean_loss: Callable[..., Any], features: Array, labels: Array, batch_size: int, noted: _Noted
) -> float:
    """Returns what the reader's function gives; notes who called the model, and with which examples."""
    with on_devices() as (tf, _dtensor):
        strategy = import_module("course_lib.strategies").mirrored(_REPLICAS)
        with strategy.scope():
            weight, bias = tf.Variable(_WEIGHT), tf.Variable(_BIAS)

        seen: list[set[float]] = [set() for _replica in range(_REPLICAS)]

        def note(replica: Any, inputs: Array) -> None:
            seen[int(replica)].update(inputs.ravel().tolist())

        def model(inputs: Any, training: bool = False) -> Any:
            del training
            context = tf.distribute.get_replica_context()
            noted.on_replicas.append(context is not None and context.strategy is strategy)
            if noted.on_replicas[-1]:
                tf.numpy_function(note, [context.replica_id_in_sync_group, inputs], [])
            return tf.convert_to_tensor(inputs) * weight + bias

        dataset = tf.data.Dataset.from_tensor_slices((features, labels)).batch(batch_size)
        found = plain(answered(mean_loss(strategy, model, dataset)))
        noted.twice |= bool(set.intersection(*seen))
        noted.idle |= not all(seen)
    if not is_number(found):
        raise CourseError(
            _("Your function does not return one number."),
            allowed=_("the mean loss over all examples"),
            cure=_("Make one value of what the replicas have with `strategy.reduce`, and return a number."),
        )
    return float(found)
