"""The exercises of this lesson: a step under `fit` that also reports, and gradients clipped as a whole."""

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

Gradients = list[Array]
Examples = tuple[Array, Array]
_RATE, _WHILE_TRAINING = 0.5, 2.0


def _fitted(
    shown: Callable[[int], float] = lambda replicas: 1, moved: Callable[[int], int] = lambda replicas: 1
) -> Callable[..., Any]:
    """Returns two epochs on one device, with factors for the loss and for the gradient."""

    def fitted(weight: Array, examples: Examples, batch_size: int, replicas: int) -> dict[str, Any]:
        history, (x, y) = [], examples
        for _epoch in range(2):
            losses = []
            for first in range(0, len(x), batch_size):
                rows = slice(first, first + batch_size)
                chances = np.exp(_WHILE_TRAINING * x[rows] @ weight)
                chances /= chances.sum(axis=1, keepdims=True)
                losses.append(-np.log(chances[np.arange(batch_size), y[rows]]).mean())
                gradient = x[rows].T @ (chances - np.eye(weight.shape[1])[y[rows]]) / batch_size
                weight = weight - moved(replicas) * _RATE * _WHILE_TRAINING * gradient
            history.append(shown(replicas) * np.mean(losses))
        return {"losses": history, "weight": weight}

    return fitted


def _twice_while_training(_layer: object, x: Any, training: bool = False) -> Any:
    return _WHILE_TRAINING * x if training else x


def _fit(
    answer: Callable[..., Any], weight: Array, examples: Examples, batch_size: int, replicas: int
) -> dict[str, Any]:
    keras, (x, y) = start_tensorflow().keras, examples
    own = type("Own", (keras.Sequential,), {"train_step": lambda model, batch: answer(model, *batch)})
    twice = type("TwiceWhileTraining", (keras.layers.Layer,), {"call": _twice_while_training})
    with replica_runs.replicas(replicas).scope():
        dense = keras.layers.Dense(weight.shape[1], use_bias=False)
        model = own([keras.Input(x.shape[1:]), twice(), dense])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.SGD(_RATE), loss)
    model.set_weights([weight])
    history = model.fit(x, y, batch_size=batch_size, epochs=2, shuffle=False, verbose=0).history
    return {"losses": history.get("loss"), "weight": model.get_weights()[0]}


@exercise("own_steps-train-step", right=_fitted)
def train_step(answer: Callable[..., Any]) -> str | None:
    """Two epochs of `fit` on one replica and on two: what is reported, and the weight."""
    random = np.random.default_rng(0)
    weight, x = (random.normal(0, 1, shape).astype(np.float32) for shape in ((3, 4), (16, 3)))
    examples = x, np.arange(16) % 4
    cases = [
        Case((weight, examples, 8, 1), told=_("one replica")),
        Case((weight, examples, 4, 2), told=_("two replicas")),
    ]
    return judge(
        answer,
        _fitted(),
        cases,
        run=_fit,
        tolerance=1e-3,
        advice=_(
            "Take the gradient of what `compute_loss` returns, with the model called for training. Feed"
            " `model.metrics[0]` the undivided losses of the single examples, and return its result under"
            " the name `loss`, alone: numbers of your own are reported for the last batch only."
        ),
        misconceptions={
            _fitted(shown=lambda replicas: 0): _(
                "`fit` reports the metric `loss`, and nothing was fed to it."
            ),
            _fitted(shown=lambda replicas: 1 / replicas): _(
                "The weights are right. The reported loss is divided by the replicas once too often."
            ),
            _fitted(moved=lambda replicas: replicas): _(
                "The reported loss is right. But each replica takes the gradient of the mean over its own"
                " examples, and these are added up. `compute_loss` also divides by the replicas."
            ),
        },
    )


def _cut(parts: list[Gradients], limit: float) -> Gradients:
    """Returns the sum over the replicas, clipped."""
    total = [np.sum(each, axis=0) for each in zip(*parts, strict=True)]
    norm = np.sqrt(sum((each**2).sum() for each in total))
    return [each * min(1.0, limit / norm) for each in total]


def _applied(answer: Callable[..., Any], parts: list[Gradients], limit: float) -> Gradients:
    """Returns by how much the optimizer changes two variables, in a compiled function."""
    tf, strategy = start_tensorflow(), replica_runs.replicas(len(parts))
    with strategy.scope():
        variables = [tf.Variable(tf.zeros(each.shape)) for each in parts[0]]
        sgd = tf.keras.optimizers.SGD(1.0)
        sgd.build(variables)
    sent = [replica_runs.sent(strategy, each) for each in zip(*parts, strict=True)]
    apply = lambda *gradients: sgd.apply(answer(list(gradients), limit), variables)  # noqa: E731
    tf.function(lambda: strategy.run(apply, args=sent))()
    return [-each.numpy() for each in variables]


@exercise("own_steps-clipped", right=_cut)
def clipped(answer: Callable[..., Any]) -> str | None:
    """The step of SGD on two replicas and on four, with gradients above the limit and below it."""
    normal = np.random.default_rng(0).normal
    cases = []
    for count, limit in ((2, 1.0), (4, 1.0), (2, 100.0)):
        parts = [[normal(size=size).astype(np.float32) for size in (2, 3)] for _replica in range(count)]
        cases.append(
            Case((parts, limit), told=_("replicas: {count}, limit: {limit}", count=count, limit=limit))
        )
    return judge(
        answer,
        _cut,
        cases,
        run=_applied,
        tolerance=1e-3,
        advice=_("Add up over the replicas, clip the sum, and divide by what `apply` will multiply it by."),
        misconceptions={
            lambda parts, limit: _cut([_cut([each], limit) for each in parts], np.inf): _(
                "Each replica clips its own gradients. Add up first, then clip."
            ),
            lambda parts, limit: [len(parts) * each for each in _cut(parts, limit)]: _(
                "The sum is clipped, but `apply` adds it up over the replicas once more."
            ),
            lambda parts, limit: _cut(parts, limit * len(parts)): _(
                "You clip the mean of the shares. One device clips their sum: clip first, divide later."
            ),
        },
    )
