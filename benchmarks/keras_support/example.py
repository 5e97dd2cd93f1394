"""What every case trains: two dense layers, their first values, the batches, and the answer of a case."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

BATCH_SIZE, FEATURES, HIDDEN, CLASSES, STEPS = 16, 20, 48, 2, 20
LEARNING_RATE = 1e-2
SHAPES = {
    "hidden.kernel": (FEATURES, HIDDEN),
    "hidden.bias": (HIDDEN,),
    "logits.kernel": (HIDDEN, CLASSES),
    "logits.bias": (CLASSES,),
}
SHARDS = {  # what a device holds of each shape, where `model` splits the hidden units in two
    (FEATURES, HIDDEN): (FEATURES, HIDDEN // 2),
    (HIDDEN,): (HIDDEN // 2,),
    (HIDDEN, CLASSES): (HIDDEN // 2, CLASSES),
    (CLASSES,): (CLASSES,),
}
Case = Callable[[], Mapping[str, Any]]
Held = list[tuple[tuple[int, ...], tuple[int, ...]]]  # the shape of each variable, and that of its first part


def first_values(shapes: Mapping[str, tuple[int, ...]] = SHAPES) -> list[np.ndarray]:
    """Returns equal values for equal shapes, whichever Keras they go to."""
    random = np.random.default_rng(3)
    return [random.normal(0, 0.3, shape).astype(np.float32) for shape in shapes.values()]


def examples() -> tuple[np.ndarray, np.ndarray]:
    """Returns `[examples, features]` and `[examples]`: a batch for each step, none like another."""
    random = np.random.default_rng(5)
    features = random.random((STEPS * BATCH_SIZE, FEATURES), np.float32)
    return features, (features.sum(axis=1) > FEATURES / 2).astype(np.int64)


def batches() -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns the examples batch by batch."""
    features, labels = examples()
    return list(
        zip(
            features.reshape(STEPS, BATCH_SIZE, FEATURES),
            labels.reshape(STEPS, BATCH_SIZE),
            strict=True,
        )
    )


def difference(ours: Any, theirs: Any) -> float:
    """Returns the largest difference between numbers in the same place."""
    pairs = zip(ours, theirs, strict=True)
    return max(float(np.max(np.abs(np.asarray(one) - np.asarray(other)))) for one, other in pairs)


def is_as_asked(held: Held) -> bool:
    """Returns whether a device holds of each variable, and of each slot, what the layouts say."""
    return all(local_shape == SHARDS[shape] for shape, local_shape in held if shape)


def answer(cases: Mapping[str, Case]) -> None:
    """Runs the case that the command line names, in one word or more, and prints what it found."""
    name = " ".join(sys.argv[1:])
    if name not in cases:
        sys.exit(f"Name one of these cases: {', '.join(cases)}")
    print(json.dumps(cases[name]()))
