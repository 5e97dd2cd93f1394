"""A trainer that begins anew as often as it is asked to: compiling a step takes seconds, training moments."""

from __future__ import annotations

from typing import Any

from course_lib.models.sentiment import MLP
from course_lib.training.run import TrainingRun
from course_lib.training.settings import Settings
from course_lib.training.trainer import Trainer
from course_lib.training.work import Work


class Reused:
    """A trainer with the values that it had at first.

    Attributes:
        trainer: the trainer.
        model: its model.
    """

    def __init__(self, model: MLP) -> None:
        self.model, self.trainer = model, Trainer(model)
        self._first = self.trainer.state()

    def run(
        self, train_set: Any, test_set: Any = None, *, checkpoints: Any = None, **settings: Any
    ) -> TrainingRun:
        """Returns a run from the first values, or from where the checkpoints are."""
        self.begin_anew()
        return TrainingRun(Work(self.trainer, train_set, test_set, Settings(**settings), checkpoints))

    def begin_anew(self) -> None:
        """Gives all variables their first values."""
        self.trainer.set_state(self._first)
