"""The training step of lesson 3: what it computes, in order, and the axis that each sum runs over."""

from __future__ import annotations

from course_lib.i18n import _
from course_lib.specs.plan import BATCH, Plan
from lessons.lesson_03_one_step.timeline import Phase, Timeline


def mlp_step(plan: Plan) -> Timeline:
    """Returns the order of a step of two dense layers with `tf.nn.moments` between them. It draws itself.

    The sums of a phase share an all-reduce, as TensorFlow 2.21 combines them: the loss waits for the
    gradients.

    Mean and variance scale and shift the hidden units, `n = scale * y + shift`. So on the way back the
    gradients of these two are sums over the batch as well. `models.MLP` sums less often: it takes both
    moments at once.

    >>> from course_lib.specs.plan import data_parallel, model_parallel, spatial_parallel
    >>> for plan in (data_parallel(8), model_parallel(4, 2), spatial_parallel()):
    ...     rounds = mlp_step(plan).all_reduces
    ...     print(sum(len(event.names) for event in rounds), len(rounds))
    9 4
    10 5
    11 6
    """
    phases = [
        Phase(("x W1",), "features"),
        Phase((_("mean"),), BATCH),
        Phase((_("variance"),), BATCH),
        Phase(("n W2",), "hidden"),
        Phase(tuple(_gradient(name) for name in (_("shift"), _("scale"))), BATCH),
        Phase((_("loss"), *(_gradient(name) for name in ("W1", "b1", "W2", "b2"))), BATCH),
        Phase((_("update"),)),
    ]
    return Timeline(plan, phases)


def _gradient(name: str) -> str:
    return _("gradient of {name}", name=name)
