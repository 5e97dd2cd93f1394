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
    weight: Array, parts: tuple[Part, ...], divide_by: str = "batch", all_reduce: str = "SUM", told: str = ""
) -> Outcome:
    """Returns what a step in NumPy does, with the mistakes that are asked for."""
    count = sum(len(labels) for _features, labels in parts)
    shares, gradients = [], []
    for features, labels in parts:
        errors = features.astype(np.float64) @ weight - labels
        divisors = {"batch": count, "part": len(labels), "both": len(labels) * len(parts)}
        shares.append(float(np.sum(errors**2) / divisors[told or divide_by]))
        gradients.append(2 * features.T @ errors / divisors[divide_by])
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
    unequal = _(
        "You divide by a replica's own examples. Parts may differ in size: divide by the global batch."
    )
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
            partial(_stepped, all_reduce="MEAN"): _(
                "`MEAN` divides by the replicas once more. Add up gradients: `SUM`."
            ),
            partial(_stepped, divide_by="both"): unequal,
            partial(_stepped, divide_by="part"): unequal,
            partial(_stepped, divide_by="part", told="batch"): unequal,
            partial(_stepped, divide_by="part", all_reduce="MEAN"): unequal,
            partial(_stepped, divide_by="part", all_reduce="MEAN", told="batch"): unequal,
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


_REVIEWS = (143, 128, 100)  # of these, 15, none and 36 are no full batch
_SECONDS = 90  # for a fit: a second or so, but where a machine is busy it waits
_TOLERANCE = 5e-4  # of a weight, for Adam enlarges rounding; a wrong last step moves some by ten times that


@exercise("strategies-mend", right=lambda strategy, make_model, features, labels: None)
def mend(answer: Callable[..., Any]) -> str | None:
    """An epoch of `fit` that gives the same weights on one device and on two."""
    hints = {
        "model": _("Return the model that `make_model` made. Call it once."),
        "scope": _("The model's variables aren't those of `strategy`. What belongs into its scope?"),
        "fit": _("Use `fit`: with `train_on_batch` every replica gets the whole batch."),
        "steps": _("Make one epoch, and of global batches: `batch_size=64` is for all replicas together."),
        "own rows": _("The weights differ, for each replica normalizes its own rows."),
        "unequal": _("That is an update too many: the last batch isn't full. Leave it out."),
        "other": _("The weights aren't those of an epoch over all full batches, in their order."),
    }
    wrong = {(lambda key=key: key): hint for key, hint in hints.items()}
    case = Case((), told=_("one replica and two, with 143 reviews; one, with 128 and with 100"))
    return judge(answer, lambda: "equal", [case], run=_verdict, misconceptions=wrong)


def _verdict(train: Callable[..., Any]) -> str:
    """Returns "equal", or what keeps the weights from being those that one device finds."""
    tf, random = start_tensorflow(), np.random.default_rng(0)
    features, labels = random.random((max(_REVIEWS), 20), np.float32), np.arange(max(_REVIEWS)) % 2
    keras, made = tf.keras, []

    def make_model(*, synchronized: bool = False) -> Any:
        keras.utils.set_random_seed(1)
        norm = keras.layers.BatchNormalization(synchronized=synchronized)
        layers = [keras.Input((20,)), keras.layers.Dense(8, "relu"), norm, keras.layers.Dense(2)]
        made.append(keras.Sequential(layers))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        made[-1].compile(keras.optimizers.Adam(0.01), loss)
        return made[-1]

    tf.config.run_functions_eagerly(True)  # a fit that is compiled takes many seconds
    try:
        one, two, right = tf.distribute.get_strategy(), replica_runs.replicas(2), {}
        for batches in (1, 2):
            right[batches] = make_model()
            rows = slice(64 * batches)
            right[batches].fit(features[rows], labels[rows], batch_size=64, shuffle=False, verbose=0)
        for strategy, count in ((two, _REVIEWS[0]), *((one, count) for count in _REVIEWS)):
            made.clear()
            with limit.time_limit(_SECONDS):
                model = train(strategy, make_model, features[:count], labels[:count])
            if len(made) != 1 or model is not made[0]:
                return "model"
            several, steps = strategy.num_replicas_in_sync > 1, model.optimizer.iterations.numpy()
            batches = count // 64
            pairs = zip(model.get_weights(), right[batches].get_weights(), strict=True)
            found = {
                "scope": several != hasattr(model.weights[0].value, "values"),
                "fit": getattr(model, "history", None) is None,
                "unequal": count % 64 and steps == batches + 1,
                "steps": steps != batches,
                "own rows": several and not model.layers[1].synchronized,
                "other": any(np.abs(ours - theirs).max() > _TOLERANCE for ours, theirs in pairs),
            }
            if any(found.values()):
                return next(verdict for verdict, holds in found.items() if holds)
    finally:
        tf.config.run_functions_eagerly(False)
    return "equal"
