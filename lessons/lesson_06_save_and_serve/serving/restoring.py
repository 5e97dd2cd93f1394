"""A model out of a checkpoint, without the training that the checkpoint also holds."""

from __future__ import annotations

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.models.model import Model
from course_lib.training.checkpoints import CheckpointFolder
from course_lib.training.saved import Saved


def restore_model(folder: CheckpointFolder, model: Model) -> Saved:
    """Gives a model the values of the newest checkpoint of a training, and returns the checkpoint.

    The mesh of the training does not matter, nor does that of the model. The slots of an optimizer stay in
    the checkpoint: serving needs none.

    Raises:
        CourseError: there is no checkpoint, or it holds no model; then `model` is as it was.
    """
    saved = folder.restore_latest(model=model)
    if saved is None:
        raise CourseError(
            _("There is no whole checkpoint in {path}.", path=folder.path),
            allowed=_("a folder in which a training has saved"),
            cure=_("Give training.train(..., checkpoints=...) this folder, and train for an epoch."),
        )
    return saved
