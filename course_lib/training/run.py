"""Training the MLP: a run that yields records, can be stopped after any of them, and resumes to the bit."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.data.examples import Examples
from course_lib.dtensor import create_mesh, pack, to_numpy
from course_lib.models.sentiment import MLP
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from course_lib.training.batches import (
    fingerprint,
    require_examples,
    require_not_beyond,
    require_one_batch,
    require_same,
    require_settings,
    shuffled,
    stack,
)
from course_lib.training.checkpoints import CheckpointFolder, restore
from course_lib.training.records import EpochRecord, StepRecord
from course_lib.training.steps import STEPS_PER_CALL, evaluate, train_steps


def train(
    model: MLP,
    train_set: Examples,
    test_set: Examples | None = None,
    *,
    epochs: int,
    batch_size: int = 64,
    learning_rate: float = 1e-2,
    seed: int = 0,
    checkpoints: CheckpointFolder | None = None,
) -> TrainingRun:
    """Returns a run that trains as its records are asked for, from the newest checkpoint if there is one.

    Gradient descent on the *summed* loss. Each epoch shuffles the rows and leaves out the last ones, fewer
    than a batch: other rows each time.

    Args:
        model: the model, on any plan. A checkpoint gives it new values, whatever plan it was saved under.
        train_set: what to train on.
        test_set: what to evaluate on after each epoch.
        epochs: the number of epochs in all, those before a resumption included.
        batch_size: the number of examples in a global batch.
        learning_rate: of the summed loss: 1e-2 with a batch of 64 is 0.64 of the mean loss.
        seed: of the order of the rows.
        checkpoints: where to save after each epoch, and at `close`.

    Raises:
        CourseError: a setting or the examples cannot be used, the batch does not divide among the devices,
            the folder cannot be written to, or its checkpoints come from another training.
    """
    model.plan.require_batch(batch_size)
    require_settings(epochs, learning_rate, seed)
    for examples in [train_set] if test_set is None else [train_set, test_set]:
        require_examples(examples, model.dims[0], model.dims[2])
    require_one_batch(len(train_set), batch_size)
    settings = Settings(int(batch_size), float(learning_rate), int(seed))
    return TrainingRun(model, train_set, test_set, epochs=epochs, settings=settings, checkpoints=checkpoints)


@dataclass(frozen=True)
class Settings:
    """What a training may not change between two visits: `batch_size`, `learning_rate` and `seed`."""

    batch_size: int
    learning_rate: float
    seed: int


@dataclass(frozen=True)
class Progress:
    """Where a training is: what a checkpoint holds beside the variables.

    Attributes:
        step: the last step whose record was handed out.
        epoch: how many epochs have handed out their record.
        loss: the sum of the losses of the present epoch's examples so far.
        hits: how many of them were classified rightly.
    """

    step: int = 0
    epoch: int = 0
    loss: float = 0.0
    hits: float = 0.0


Sums = npt.NDArray[np.float32]


class TrainingRun(Iterator[StepRecord | EpochRecord]):
    """Iterates over a training's records; the training happens as they are asked for.

    Steps run several at a time, but `close` goes back to the last record that was handed out. It may be
    called from any thread, waits for the call under way, and is what leaving a `with` block does.

    Attributes:
        total_steps: the number of steps of all the epochs.
        start_step: the number of steps that were already done: above 0 when a checkpoint was found.
        steps_per_epoch: the number of whole batches in the training set.
    """

    def __init__(
        self,
        model: MLP,
        train_set: Examples,
        test_set: Examples | None,
        *,
        epochs: int,
        settings: Settings,
        checkpoints: CheckpointFolder | None,
    ) -> None:
        """Takes checked arguments of `train`, and restores the newest checkpoint."""
        self._model, self._train_set, self._test_set = model, train_set, test_set
        self._epochs, self._settings, self._checkpoints = epochs, settings, checkpoints
        self._mesh = create_mesh(model.plan.mesh)
        self._lock, self._closed = threading.Lock(), False
        self._undo: tuple[int, list[Any]] | None = None  # a step, and the variables as they were after it
        self._ready: tuple[int, tuple[Any, Any]] | None = None  # a step, and the batches that come after it
        self._learning_rate = self._send(np.array(settings.learning_rate, np.float64))
        self.steps_per_epoch = len(train_set) // settings.batch_size
        self.total_steps = epochs * self.steps_per_epoch
        self._progress = self._saved = Progress() if checkpoints is None else self._resume(checkpoints)
        self.start_step = self._progress.step
        self._records = self._generate()

    @property
    def step(self) -> int:
        """The last step whose record was handed out."""
        return self._progress.step

    @property
    def finished(self) -> bool:
        """Whether the last record was handed out."""
        return self._progress.epoch >= self._epochs

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def __next__(self) -> StepRecord | EpochRecord:
        with self._lock:
            try:
                return next(self._records)
            except KeyboardInterrupt:
                self._settle()
                raise

    def __enter__(self) -> TrainingRun:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the training; the model, and a checkpoint if there is a folder, are at `step` exactly."""
        with self._lock:
            self._closed = True
            self._records.close()
            self._settle()

    def _generate(self) -> Generator[StepRecord | EpochRecord, None, None]:
        while self._progress.epoch < self._epochs:
            if self.step < (self._progress.epoch + 1) * self.steps_per_epoch:
                yield from self._some_steps()
            else:
                yield self._finish_epoch()

    def _some_steps(self) -> Iterator[StepRecord]:
        first = self.step
        count = min(STEPS_PER_CALL, self.steps_per_epoch - first % self.steps_per_epoch)
        self._undo = first, [variable.read_value() for variable in self._model.variables]
        start = time.perf_counter()
        losses, hits = self._run_steps(first, count)
        seconds = (time.perf_counter() - start) / count
        size = self._settings.batch_size
        for loss, hit in zip(losses[:count].tolist(), hits[:count].tolist(), strict=True):
            now = self._progress
            self._progress = Progress(now.step + 1, now.epoch, now.loss + loss, now.hits + hit)
            yield StepRecord(self.step, now.epoch + 1, loss / size, hit / size, size, seconds)
        self._undo = None

    def _run_steps(self, first: int, count: int) -> tuple[Sums, Sums]:
        inputs, labels = self._stack(first)
        num_steps = self._send(np.array(count, np.int16))
        losses, hits = train_steps(self._model, inputs, labels, num_steps, self._learning_rate)
        self._stack(first + count)  # TensorFlow is still computing: meanwhile the next stack is made ready
        return to_numpy(losses), to_numpy(hits)

    def _stack(self, first: int) -> tuple[Any, Any]:
        """Returns the inputs and labels of the steps after `first`, each device having been sent its own."""
        if self._ready is None or self._ready[0] != first:
            epoch, done = divmod(first, self.steps_per_epoch)
            size = self._settings.batch_size
            order = shuffled(len(self._train_set), self._settings.seed, epoch)
            num_batches = min(STEPS_PER_CALL, self.steps_per_epoch)
            rows = order[done * size : min(done + num_batches, self.steps_per_epoch) * size]
            inputs, labels = stack(self._train_set, rows, num_batches, size)
            self._ready = first, (self._send(inputs, "inputs"), self._send(labels, "labels"))
        return self._ready[1]

    def _send(self, array: npt.NDArray[Any], like: str | None = None) -> Any:
        """Returns an array as a DTensor: replicated, or a stack of batches each laid out `like` a tensor."""
        mesh = self._model.plan.mesh
        if like is None:
            return pack(array, LayoutSpec.replicated(mesh, array.ndim), self._mesh)
        entries = self._model.plan.layouts[like].sharding_specs
        return pack(array, LayoutSpec([UNSHARDED, *entries], mesh), self._mesh)

    def _let_moments_catch_up(self) -> None:
        """Runs the moving moments over batches while the weights stand still.

        Until then they average over steps in which the weights moved on. The batches are the first of the
        next epoch, which are packed already (docs/decisions/moments-catch-up.md).
        """
        inputs, labels = self._stack(self.step)
        num_steps = self._send(np.array(inputs.shape[0], np.int16))
        train_steps(self._model, inputs, labels, num_steps, self._send(np.array(0.0, np.float64)))

    def _finish_epoch(self) -> EpochRecord:
        now = self._progress
        self._undo = now.step, [variable.read_value() for variable in self._model.variables]
        self._let_moments_catch_up()
        examples = self.steps_per_epoch * self._settings.batch_size
        test_loss, test_accuracy = (
            (None, None) if self._test_set is None else evaluate(self._model, self._test_set)
        )
        following = Progress(now.step, now.epoch + 1)
        checkpoint = self._save(following)
        self._progress, self._undo = following, None
        train_loss, train_accuracy = now.loss / examples, now.hits / examples
        return EpochRecord(
            following.epoch, now.step, train_loss, train_accuracy, test_loss, test_accuracy, checkpoint
        )

    def _settle(self) -> None:
        """Takes the model back to the last record that was handed out, and saves it there."""
        if self._undo is not None:
            first, values = self._undo
            for variable, value in zip(self._model.variables, values, strict=True):
                variable.assign(value)
            if self.step > first:
                self._run_steps(first, self.step - first)
            self._undo = None
        if self._saved != self._progress:
            self._save(self._progress)

    def _save(self, progress: Progress) -> str | None:
        if self._checkpoints is None:
            return None
        facts = {"settings": self._identity(), "progress": asdict(progress)}
        name = self._checkpoints.save(progress.step, facts, model=self._model)
        self._saved = progress
        return name

    def _resume(self, checkpoints: CheckpointFolder) -> Progress:
        checkpoints.prepare()
        saved = checkpoints.latest()
        if saved is None:
            return Progress()
        identity = self._identity()
        require_same(identity, saved.fact("settings", identity), str(checkpoints.path))
        progress = Progress(**saved.fact("progress", asdict(Progress())))
        require_not_beyond(progress.step, self.steps_per_epoch, self._epochs, str(checkpoints.path))
        restore(saved, model=self._model)
        return progress

    def _identity(self) -> dict[str, Any]:
        """Returns what must be the same for a training to be continued."""
        return {
            **asdict(self._settings),
            "dims": list(self._model.dims),
            "initial_values": self._model.origin,
            "train_set": self._fingerprint,
        }

    @cached_property
    def _fingerprint(self) -> str:
        return fingerprint(self._train_set)
