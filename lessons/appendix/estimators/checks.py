"""The exercise of this appendix: a program with an Estimator, written with Keras."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.values import Array
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow

_BATCH, _LEARNING_RATE = 8, 0.02
_EXAMPLES = 60  # fewer than a training takes, so that it has to begin again


def _trained(
    replicas: int, x: Array, y: Array, steps: int, *, batch: int = 0, copies: int = 0, times: int = 1
) -> dict[str, float]:
    """Returns the line that the Estimator trains, in NumPy, with the mistakes that are asked for."""
    weight = bias = 0.0
    batch = batch or _BATCH * replicas
    for step in range(steps):
        at = np.arange(step * batch, (step + 1) * batch) % len(x)
        errors = weight * x[at] + bias - y[at]
        weight -= times * _LEARNING_RATE * 2 * float(np.nanmean(errors * x[at]))
        bias -= times * _LEARNING_RATE * 2 * float(np.nanmean(errors))
    return {"weight": weight, "bias": bias, "replicas": copies or replicas}


def _restarted(replicas: int, x: Array, y: Array, steps: int) -> dict[str, float]:
    """Returns the line where each pass ends in a short batch: what is missing in it is nan."""
    missing = np.full((-len(x) % (_BATCH * replicas), 1), np.nan)
    return _trained(replicas, np.concatenate([x, missing]), np.concatenate([y, missing]), steps)


def _ported(answer: Callable[..., Any], replicas: int, x: Array, y: Array, steps: int) -> Any:
    """Returns weight and bias of the model that a reader's function trains, and on how many replicas."""
    tf = start_tensorflow()
    devices = [f"CPU:{number}" for number in range(replicas)]
    strategy = tf.distribute.MirroredStrategy(devices, tf.distribute.ReductionToOneDevice())
    model = answer(strategy, x, y, steps)
    if not hasattr(model, "get_weights"):
        return model
    weight, bias = (each.item() for each in model.get_weights())
    variable = model.weights[0]
    copies = strategy.experimental_local_results(variable.value if hasattr(variable, "path") else variable)
    return {"weight": weight, "bias": bias, "replicas": len(copies)}


@exercise("estimators-ported", right=Callable)
def ported(answer: Callable[..., Any]) -> str | None:
    """A training with an Estimator, written with Keras."""
    random = np.random.default_rng(1)
    cases = []
    for replicas, steps in ((2, 12), (4, 18)):
        x = random.uniform(-1, 1, (_EXAMPLES, 1)).astype(np.float32)
        y = (4 * x - 1 + random.normal(0, 1, x.shape)).astype(np.float32)
        told = _("replicas: {count}, steps: {steps}", count=replicas, steps=steps)
        cases.append(Case((replicas, x, y, steps), told=told))
    return judge(
        answer,
        _trained,
        cases,
        run=_ported,
        misconceptions={
            partial(_trained, batch=_BATCH): _(
                "Your batch has 8 examples, and the replicas share it. In the old program, each took 8."
            ),
            lambda replicas, *given: _trained(replicas, *given, times=replicas): _(
                "The gradients are too large by the number of replicas, or the learning rate is."
            ),
            _restarted: _("The last batch is short. Repeat the data before you batch it."),
            partial(_trained, copies=1): _("One device computes it all. Use the scope of `strategy`."),
        },
        advice=_(
            "Return the model, after `steps` steps in all, under the given strategy. Does its line start from"
            " zeros, with the old optimizer and loss? Are the examples in order, and begun again at the end?"
        ),
    )
