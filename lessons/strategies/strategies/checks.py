"""The exercises of this lesson: a step on replicas, and a `fit` that is mended."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from course_lib.exercises import limit
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


def _stepped(
    weight: Array, parts: tuple[Part, ...], *, divide_by: str = "batch", all_reduce: str = "SUM"
) -> Outcome:
    """Returns what a step in NumPy does, with the mistakes that are asked for."""
    count = sum(len(labels) for _features, labels in parts)
    shares, gradients = [], []
    for features, labels in parts:
        errors = features.astype(np.float64) @ weight - labels
        divisor = {"batch": count, "part": len(labels), "both": len(labels) * len(parts)}[divide_by]
        shares.append(float(np.sum(errors**2) / divisor))
        gradients.append(2 * features.T @ errors / divisor)
    combined = np.sum(gradients, axis=0) / (len(parts) if all_reduce == "MEAN" else 1)
    used = [combined] * len(parts) if all_reduce else gradients
    return _outcome([weight - _LEARNING_RATE * gradient for gradient in used], shares)


def _outcome(copies: list[Any], shares: list[float]) -> Outcome:
    named = {f"copies[{at}]": np.asarray(copy) for at, copy in enumerate(copies)}
    return {**named, "shares": np.array(shares)}


@exercise("strategies-by-hand", right=_stepped)
def by_hand(answer: Callable[..., Any]) -> str | None:
    """A step of gradient descent as one of several replicas takes it."""
    random = np.random.default_rng(0)
    unequal = _("This is right for equal parts. Parts may differ in size: divide by the global batch.")
    return judge(
        answer,
        _stepped,
        [_case(random, sizes) for sizes in _SIZES],
        run=_step_on_replicas,
        misconceptions={
            partial(_stepped, all_reduce=""): _(
                "Each replica uses its own gradient here, and the copies drift apart. Combine the gradients"
                " first."
            ),
            partial(_stepped, all_reduce="MEAN"): _("`MEAN` divides by the replicas once more. Use `SUM`."),
            partial(_stepped, divide_by="part", all_reduce="MEAN"): unequal,
            partial(_stepped, divide_by="both"): unequal,
        },
        tolerance=1e-3,
        advice=_("By what do you divide? What comes from all of them? Check the sign, and what you return."),
    )


def _case(random: np.random.Generator, sizes: tuple[int, ...]) -> Case:
    normal = random.normal
    weight = normal(size=_FEATURES).astype(np.float32)
    parts = tuple((np.float32(normal(size=(n, _FEATURES))), np.float32(normal(size=n))) for n in sizes)
    listed = _(", ").join(map(str, sizes))
    return Case((weight, parts), told=_("examples on each replica: {sizes}", sizes=listed))


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


_REVIEWS = 143  # two full batches, and one with unequal parts
_SECONDS = 90  # for a fit: a second or so, but where a machine is busy it waits
_TOLERANCE = 5e-4  # of a weight, for Adam enlarges rounding; a wrong last step moves some by ten times that


@exercise("strategies-mend", right=lambda strategy, features, labels: None)
def mend(answer: Callable[..., Any]) -> str | None:
    """An epoch of `fit` that gives the same weights on one device and on two."""
    hints = {
        "scope": _("One device trained, whatever the strategy. What belongs into its scope?"),
        "model": _("Use the model of `make_model`, with its batch normalization."),
        "fit": _("Use `fit`: with `train_on_batch` every replica gets the whole batch."),
        "steps": _("Make one epoch, and of global batches: `batch_size=64` is for all replicas together."),
        "own rows": _("The weights differ, for each replica normalizes its own rows."),
        "unequal": _("The weights differ, for not every batch falls into equal parts."),
    }
    cases = [Case((count,), told=_("{count} replicas", count=count)) for count in (1, 2)]
    wrong = {(lambda n, key=key: key if n > 1 else "equal"): hint for key, hint in hints.items()}
    return judge(answer, lambda _count: "equal", cases, run=partial(_verdict, []), misconceptions=wrong)


def _verdict(models: list[Any], train: Callable[..., Any], num_replicas: int) -> str:
    """Returns "equal", or what keeps the weights from being those of the model before, of one device."""
    tf, random = start_tensorflow(), np.random.default_rng(0)
    features, labels = random.random((_REVIEWS, 1200), np.float32), np.arange(_REVIEWS) % 2
    strategy = tf.distribute.get_strategy() if num_replicas == 1 else replica_runs.replicas(num_replicas)
    tf.config.run_functions_eagerly(True)  # a fit that is compiled takes many seconds
    try:
        with limit.time_limit(_SECONDS):
            models.append(model := train(strategy, features, labels))
    finally:
        tf.config.run_functions_eagerly(False)
    if num_replicas == 1:
        return "equal"
    norms = [each for each in model.layers if isinstance(each, tf.keras.layers.BatchNormalization)]
    pairs = zip(model.get_weights(), models[0].get_weights(), strict=True)
    found = {
        "scope": len(getattr(model.weights[0].value, "values", [0])) != num_replicas,
        "model": not any(each.trainable for each in norms),
        "fit": getattr(model, "history", None) is None,
        "steps": any(each.optimizer.iterations.numpy() not in (2, 3) for each in models),
        "equal": all(np.abs(ours - right).max() <= _TOLERANCE for ours, right in pairs),
        "own rows": not all(each.synchronized for each in norms),
        "unequal": True,
    }
    return next(verdict for verdict, holds in found.items() if holds)
