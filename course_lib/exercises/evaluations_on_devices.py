"""A small model on eight devices that notes how its devices share the work of a reader's function."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from course_lib.errors import CourseError
from course_lib.exercises import real_devices
from course_lib.exercises.evaluations import DEVICES, small_values
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.plan import data_parallel


def small_model() -> Any:
    """Returns a small model on eight devices."""
    return import_module("course_lib.models.sentiment").MLP(small_values(), data_parallel(DEVICES))


class Watched:
    """A model that notes whether its devices shared the rows that it was given.

    Attributes:
        asked_to_train: whether it was asked for logits as training computes them.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._rows, self._shared = 0, True
        self.asked_to_train = False

    def __call__(self, inputs: Any) -> Any:
        """Returns the logits as training computes them."""
        self.asked_to_train = True
        return self._model(inputs)

    def train_logits(self, inputs: Any, weights: Any | None = None) -> Any:
        """Returns what the model's `train_logits` does."""
        self.asked_to_train = True
        return self._model.train_logits(inputs, weights)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def evaluate_logits(self, inputs: Any) -> Any:
        """Returns the model's logits, `[batch, classes] global`."""
        self._rows += inputs.shape[0]
        components = import_module("course_lib.dtensor").unpack(inputs)
        self._shared &= all(len(each) == inputs.shape[0] // DEVICES for each in components)
        return self._model.evaluate_logits(inputs)

    def fault(self, num_rows: int) -> str | None:
        """Returns what is wrong with the work of the devices, where the values are right.

        Args:
            num_rows: of all rows that it should have been given. As many on each device are copies.
        """
        if not self._rows:
            return _("The values are right, but the model was never asked: call model.evaluate_logits.")
        if not self._shared or self._rows >= DEVICES * num_rows:
            return _(
                "The values are right, but every device computed all rows."
                " Split the rows over `batch` where you pack them."
            )
        return None


def called(function: Callable[..., Any], *inputs: Any) -> Any:
    """Returns what a reader's evaluation makes of a model and reviews, on real devices."""
    with real_devices.on_devices(dtypes=("float32", "int64")), _seen_by_python():
        try:
            return function(*inputs)
        except Exception as error:
            raise _explained(error).with_traceback(error.__traceback__) from error


@contextlib.contextmanager
def _seen_by_python() -> Iterator[None]:
    """Runs each `tf.function` step by step, so that `Watched` meets the rows and no symbols of them."""
    config = start_tensorflow().config
    before = config.functions_run_eagerly()
    config.run_functions_eagerly(True)
    try:
        yield
    finally:
        config.run_functions_eagerly(before)


def _explained(error: Exception) -> Exception:
    """Returns an error that says what to do, for the usual ones of DTensor; else the error."""
    message = str(error)
    not_packed = ("got a regular tensor", "Expecting a Tensor, got <class 'numpy", "DTensorUnpack expects")
    if any(each in message for each in not_packed):
        return CourseError(
            _("An array that was not packed met the model or a DTensor."),
            allowed=_("DTensors: features, labels and weights alike"),
            cure=_("Give the array to `pack` first, or read the DTensor back with `to_numpy`."),
        )
    if "has no attribute 'mesh'" in message:
        return CourseError(
            _("`pack` was given something else than an array and a layout."),
            allowed=_("pack(array, layout): the array first, then the layout"),
            cure=_("Look at the order of the two."),
        )
    if re.search(r"was expected to be an? \w+ tensor but is an? \w+ tensor|must be tensor of", message):
        return CourseError(
            _("Tensors of two types met, or one of a type that this operation does not take."),
            allowed=_("float32 for features, weights, losses and hits; int64 for labels"),
            cure=_("Convert an array with astype, a tensor with tf.cast."),
        )
    if "FetchLayout" in message or "to be divisible by sharding" in message:
        return CourseError(
            _("This part of a DTensor cannot be read back."),
            allowed=_("whole DTensors"),
            cure=_("Read the logits back first and slice on the host, or use weights instead of slicing."),
        )
    return error
