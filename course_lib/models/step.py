"""What a training step of the sentiment MLP computes, in order, and the axis that each sum runs over."""

from __future__ import annotations

from course_lib.i18n import _
from course_lib.specs.plan import BATCH, Plan
from course_lib.specs.timeline import Phase, Timeline


def mlp_step(plan: Plan) -> Timeline:
    """Returns the order of a training step of `MLP` under a plan, with its all-reduces. It draws itself.

    The normalised hidden units are `scale * h + shift`, where both factors follow from mean and variance. So
    on the way back the gradients of the two are sums over the batch too.

    >>> from course_lib.specs.plan import data_parallel, model_parallel, spatial_parallel
    >>> for plan in (data_parallel(8), model_parallel(4, 2), spatial_parallel()):
    ...     print(sum(len(event.names) for event in mlp_step(plan).all_reduces))
    10
    11
    12
    """
    phases = [
        Phase(("x W1",), "features"),
        Phase((_("mean"),), BATCH),
        Phase((_("variance"),), BATCH),
        Phase(("h W2",), "hidden"),
        Phase((_("hits"), _("loss")), BATCH),
        Phase(tuple(_gradient(name) for name in (_("shift"), _("scale"))), BATCH),
        Phase(tuple(_gradient(name) for name in ("W1", "b1", "W2", "b2")), BATCH),
        Phase((_("update"),)),
    ]
    return Timeline(plan, phases)


def _gradient(name: str) -> str:
    return _("gradient of {name}", name=name)
