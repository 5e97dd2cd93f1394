"""The learning rate of a larger batch."""

from __future__ import annotations


def scaled_learning_rate(base_rate: float, base_batch: int, global_batch: int) -> float:
    """Returns the learning rate that grows as the batch does, from one that is good for `base_batch`.

    >>> scaled_learning_rate(0.1, 256, 1024)
    0.4

    Source: https://arxiv.org/abs/1706.02677, section 2.1, the linear scaling rule.
    """
    return base_rate * global_batch / base_batch
