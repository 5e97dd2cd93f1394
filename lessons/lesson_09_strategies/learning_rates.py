"""The learning rate of a larger batch: a rule that takes any number of replicas."""

from __future__ import annotations

import math
from numbers import Real

from course_lib.errors import CourseError, whole_number
from course_lib.i18n import _


def scaled_learning_rate(
    base: float,
    base_batch: int,
    global_batch: int | None = None,
    *,
    per_replica: int | None = None,
    replicas: int | None = None,
) -> float:
    """Returns the learning rate that grows as the batch does: twice the batch, twice the rate.

    It is where to start, not a promise: with large batches a rate so high can fail without a warm-up.

    >>> scaled_learning_rate(0.1, 256, 1024)
    0.4
    >>> scaled_learning_rate(0.5, 64, per_replica=64, replicas=6)
    3.0

    Args:
        base: a learning rate that is good for `base_batch`.
        base_batch: the number of examples in a batch that `base` was found with.
        global_batch: the number of examples in a batch of all replicas together.
        per_replica: in place of `global_batch` the number of examples in the batch of one replica.
        replicas: how many replicas there are: `strategy.num_replicas_in_sync`.

    Raises:
        CourseError: a rate that is no finite number above 0, a batch or a number of replicas below 1, or not
            exactly one of `global_batch` and `per_replica` with `replicas`.

    Source: https://arxiv.org/abs/1706.02677, section 2.1, the linear scaling rule.
    """
    _require_rate(base)
    found_with = _at_least_one("base_batch", base_batch)
    batch = _global_batch(global_batch, per_replica, replicas)
    return float(base) * batch / found_with


def _global_batch(global_batch: int | None, per_replica: int | None, replicas: int | None) -> int:
    if (global_batch is None) == (per_replica is None) or (per_replica is None) != (replicas is None):
        raise CourseError(
            _(
                "global_batch={whole}, per_replica={each} and replicas={replicas} do not say one batch.",
                whole=global_batch,
                each=per_replica,
                replicas=replicas,
            ),
            allowed=_("global_batch alone, or per_replica and replicas"),
            cure=_(
                "Write for example {example}.",
                example="per_replica=64, replicas=strategy.num_replicas_in_sync",
            ),
        )
    if global_batch is not None:
        return _at_least_one("global_batch", global_batch)
    return _at_least_one("per_replica", per_replica) * _at_least_one("replicas", replicas)


def _at_least_one(name: str, value: object) -> int:
    return whole_number(
        value,
        _("{name} is {value!r}.", name=name, value=value),
        least=1,
        cure=_("Count the examples, or the replicas: strategy.num_replicas_in_sync."),
    )


def _require_rate(base: object) -> None:
    real = isinstance(base, Real) and not isinstance(base, bool)
    if not (real and math.isfinite(base) and base > 0):  # type: ignore[arg-type, operator]
        raise CourseError(
            _("{learning_rate!r} cannot be a learning rate.", learning_rate=base),
            allowed=_("finite numbers above 0"),
            cure=_("Give the rate that trains well with base_batch, such as 0.1."),
        )
