"""Training steps of `faster`'s plain program on the meshes of the three schemes, 32 in a call and one."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks.programs import program
from course_lib.explorers.measuring import median_seconds
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

LESSON, WHOLE_GAME = program("faster"), program("whole_game")
BATCH_SIZE, STEPS_IN_A_CALL, STEPS_IN_A_TURN = LESSON.BATCH_SIZE, LESSON.STEPS_IN_A_CALL, 128
FEATURES, HIDDEN, NUM_EXAMPLES = 1200, 48, 16_384
Dims = list[tuple[str, int]]  # of a mesh
Train = Callable[[int], object]  # trains a number of steps
SCHEMES: dict[str, tuple[Dims, Mapping[str, Any]]] = {
    "data": ([("batch", 8)], WHOLE_GAME.specs),
    "model": ([("batch", 4), ("model", 2)], WHOLE_GAME.split_specs),
    "spatial": ([("batch", 2), ("feature", 2), ("model", 2)], WHOLE_GAME.cube_specs),
}


def seconds_a_step(trains: Mapping[str, Train]) -> dict[str, float]:
    """Returns the median seconds that each takes for a step; they take turns."""
    medians = median_seconds([partial(train, STEPS_IN_A_TURN) for train in trains.values()], turns=7)
    return {name: seconds / STEPS_IN_A_TURN for name, seconds in zip(trains, medians, strict=True)}


class Steps:
    """The program's model and steps on a mesh, or on one device.

    Args:
        dims: of the mesh; none for one device.
        specs: the sharding specs by name, as the program has them.
        sizes: the numbers of features and hidden units.
    """

    def __init__(
        self, dims: Dims, specs: Mapping[str, Any], sizes: tuple[int, int] = (FEATURES, HIDDEN)
    ) -> None:
        self.layouts = dict.fromkeys(LESSON.specs)
        if dims:
            self.layouts = LESSON.layouts_on(dtensor.create_mesh(dims, device_type="CPU"), specs)
        draw, (features, hidden) = np.random.default_rng(0).normal, sizes
        values = {"W1": draw(0, np.sqrt(2 / features), (features, hidden)), "b1": np.zeros(hidden)}
        values |= {"W2": draw(0, np.sqrt(2 / hidden), (hidden, 2)), "b2": np.zeros(2)}
        LESSON.values = {name: value.astype("float32") for name, value in values.items()}
        self.model = LESSON.Model(self.layouts)

    def together(self, stacks: Any) -> Train:
        """Returns a function that trains as the program does: stacks of batches, each in one call."""
        calls = LESSON.train(self.model, self.layouts, stacks)
        return lambda num_steps: list(itertools.islice(calls, num_steps // STEPS_IN_A_CALL))

    def one_by_one(self, stacks: Any, *, means: bool = False, read_every: int = 1) -> Train:
        """Returns a function that trains one step a call, and reads losses and accuracies.

        Args:
            stacks: of batches.
            means: whether loss and accuracy are reduced as means, apart from the gradients.
            read_every: after how many steps theirs are read; it divides the number of steps of a turn.
        """
        steps = self._single_steps(stacks, means=means, read_every=read_every)
        return lambda num_steps: list(itertools.islice(steps, num_steps // read_every))

    def _single_steps(
        self, stacks: Any, *, means: bool, read_every: int
    ) -> Iterator[list[tuple[float, float]]]:
        train_step, rate = (
            (WHOLE_GAME.train_step, ()) if means else (LESSON.train_step, (LESSON.LEARNING_RATE,))
        )
        unread = []
        for step, (x, y) in enumerate(stacks.unbatch().as_numpy_iterator(), 1):
            placed = LESSON.place(x, self.layouts["x"]), LESSON.place(y, self.layouts["y"])
            unread.append(train_step(self.model, *placed, np.float32(step), *rate))
            if len(unread) == read_every:
                yield [(float(loss), float(accuracy)) for loss, accuracy in unread]
                unread = []

    def placed(self, features: Any, labels: Any) -> tuple[Any, Any]:
        """Returns stacked batches, `[steps, batch, ...] global`, on the mesh."""
        return (
            LESSON.place_stacked(features, self.layouts["x"]),
            LESSON.place_stacked(labels, self.layouts["y"]),
        )

    def on_devices(self, batches: tuple[Any, Any]) -> Train:
        """Returns a function that trains on stacked batches which lie on the devices already."""
        step, rate = np.float32(1), LESSON.LEARNING_RATE

        def train(num_steps: int) -> None:
            for _call in range(num_steps // STEPS_IN_A_CALL):
                LESSON.train_steps(self.model, *batches, step, rate)[0].numpy()

        return train


def stacks_on_disk() -> Any:
    """Returns the program's data set of files, with no end."""
    files = LESSON.write_files(*LESSON.made_up_reviews(NUM_EXAMPLES), tempfile.mkdtemp(), 4096)
    return LESSON.stacks_of(files, 1024).repeat()


def stacked_batches() -> tuple[Any, Any]:
    """Returns the batches of one call, as arrays."""
    x, y = LESSON.made_up_reviews(STEPS_IN_A_CALL * BATCH_SIZE)
    return x.reshape(STEPS_IN_A_CALL, BATCH_SIZE, -1), y.reshape(STEPS_IN_A_CALL, BATCH_SIZE)
