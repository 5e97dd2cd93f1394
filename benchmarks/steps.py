"""Training steps of `splitting_the_model`'s plain program, 32 in a call as `a_run` teaches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks.programs import program
from course_lib.data.examples import Examples
from course_lib.explorers.measuring import median_seconds
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

BATCH_SIZE, STEPS_IN_A_CALL, STEPS_IN_A_TURN, LEARNING_RATE = 64, 32, 128, 1e-2
LESSON = program("splitting_the_model")
MESHES = LESSON.MESHES

Train = Callable[[int], object]  # trains a number of steps
Dims = list[tuple[str, int]]  # of a mesh


def random_examples() -> Examples:
    """Returns examples of the shape of the IMDB reviews, with a signal that can be learnt."""
    features = np.random.default_rng(0).standard_normal((25_000, 1200), np.float32)
    return Examples(features, (features[:, :100].sum(axis=1) > 0).astype(np.int64))


def seconds_a_step(trains: Mapping[str, Train]) -> dict[str, float]:
    """Returns the median seconds that each takes for a step; they take turns."""
    medians = median_seconds([partial(train, STEPS_IN_A_TURN) for train in trains.values()], turns=7)
    return {name: seconds / STEPS_IN_A_TURN for name, seconds in zip(trains, medians, strict=True)}


class Steps:
    """The program's model and step on a mesh.

    Args:
        dims: of the mesh; what splits an axis is the program's `SPLITS`.
        sizes: the numbers of features, hidden units and classes.
    """

    def __init__(self, dims: Dims, sizes: tuple[int, int, int] = (1200, 48, 2)) -> None:
        self.layouts = LESSON.make_layouts(dims)
        draw, (features, hidden, classes) = np.random.default_rng(0).normal, sizes
        values = {"W1": draw(0, np.sqrt(2 / features), (features, hidden)), "b1": np.zeros(hidden)}
        values |= {"W2": draw(0, np.sqrt(2 / hidden), (hidden, classes)), "b2": np.zeros(classes)}
        self.model = LESSON.MLP({k: v.astype("float32") for k, v in values.items()}, self.layouts)

    def step(self, x: Any, y: Any) -> Any:
        """Trains on one batch; returns loss and accuracy, still computed."""
        return LESSON.train_step(self.model, x, y, LEARNING_RATE)

    @tf.function
    def several(self, x: Any, y: Any) -> Any:
        """Trains on stacked batches in one call; returns the means of loss and accuracy, still computed."""
        total = tf.zeros(2)
        for i in tf.range(x.shape[0]):
            total += tf.stack(self.step(tf.gather(x, i), tf.gather(y, i)))
        return total / x.shape[0]

    def packed(self, features: Any, labels: Any) -> tuple[Any, ...]:
        """Returns a batch, or stacked ones, `[steps, batch, ...] global`, on the mesh."""
        return tuple(self._packed(name, array) for name, array in {"x": features, "y": labels}.items())

    def _packed(self, name: str, array: Any) -> Any:
        layout = self.layouts[name]
        stacked = [dtensor.UNSHARDED] * (array.ndim - layout.rank) + list(layout.sharding_specs)
        return LESSON.place(array, dtensor.Layout(stacked, layout.mesh))

    def chosen(self, examples: Examples, *num_batches: int) -> tuple[Any, ...]:
        """Returns random rows as a batch, or as several, on the mesh."""
        rows = np.random.randint(len(examples), size=(*num_batches, BATCH_SIZE))
        return self.packed(examples.features[rows], examples.labels[rows])

    def together(self, examples: Examples) -> Train:
        """Returns a function that trains 32 steps a call; the next batches are packed meanwhile."""
        ready = [self.chosen(examples, STEPS_IN_A_CALL)]

        def train(num_steps: int) -> None:
            for _call in range(num_steps // STEPS_IN_A_CALL):
                means = self.several(*ready.pop())
                ready.append(self.chosen(examples, STEPS_IN_A_CALL))
                means.numpy()

        return train
