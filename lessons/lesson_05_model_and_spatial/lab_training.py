"""How a training lab makes a run of the library's own training."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from course_lib.models.model import Model
from course_lib.training.optimizers.optimizer import Optimizer
from course_lib.training.optimizers.sgd import SGD
from course_lib.training.run import TrainingRun, train
from lessons.lesson_05_model_and_spatial.lab_setting import Setting


def begin(
    setting: Setting,
    folder: Path,
    *,
    model: Callable[..., Model],
    values: Mapping[str, npt.ArrayLike],
    train_set: Any,
    test_set: Any,
    optimizer: Callable[[float], Optimizer] | None,
) -> TrainingRun:
    """Returns the run that a setting asks for, with its checkpoints in `folder`.

    Where it goes on from a checkpoint, a copy of that one is the first in the folder: what others still
    train, or removed, does not matter to it.

    Raises:
        CourseError: the devices, the checkpoint or the examples do not fit.
    """
    if setting.start is not None:
        saved = setting.start.saved
        shutil.copytree(saved.path, folder / saved.name)
    return train(
        model(values, setting.plan),
        train_set,
        test_set,
        epochs=setting.epochs,
        batch_size=setting.batch_size,
        optimizer=(optimizer or SGD)(setting.learning_rate),
        checkpoints=folder,
    )
