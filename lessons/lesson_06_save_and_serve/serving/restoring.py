"""A model out of a checkpoint, without the training that the checkpoint also holds."""

from __future__ import annotations

from course_lib.aborts import explaining_aborts
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.models.model import Model
from course_lib.runtime import start_tensorflow
from course_lib.training.checkpoints import CheckpointFolder
from course_lib.training.content import require_fit
from course_lib.training.saved import CONTENT, Saved, is_whole

tf = start_tensorflow()


@explaining_aborts()
def restore_model(folder: CheckpointFolder, model: Model) -> Saved:
    """Gives a model the values of the newest whole checkpoint of a training, and returns the checkpoint.

    The mesh of the training does not matter, nor does that of the model. The slots of an optimizer stay in
    the checkpoint: serving needs none. A training that goes on may remove the checkpoint while it is read:
    then the newest one is read.

    Raises:
        CourseError: there is no whole checkpoint, or it is of another model; then `model` is as it was, but
            for a checkpoint that vanished while it was read, with no other left.
    """
    saved = folder.latest()
    if saved is None:
        raise CourseError(
            _("There is no whole checkpoint in {path}.", path=folder.path),
            allowed=_("a folder in which a training has saved"),
            cure=_("Give training.train(..., checkpoints=...) this folder, and train for an epoch."),
        )
    try:
        _restore(saved, model)
    except Exception:  # what TensorFlow raises for a file that is gone differs from call to call
        if is_whole(saved.path):
            raise
        return restore_model(folder, model)
    return saved


def _restore(saved: Saved, model: Model) -> None:
    require_fit(saved, {"model": model}, whole=False)
    status = tf.train.Checkpoint(model=model).read(str(saved.path / CONTENT))
    status.assert_existing_objects_matched().expect_partial()
