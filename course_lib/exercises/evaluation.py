"""What the check of lesson 04's distributed evaluation compares with: one device, and plausible mistakes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from enum import Enum
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.errors import CourseError
from course_lib.exercises import real_devices
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.plan import data_parallel

Array = npt.NDArray[Any]

DEVICES = 8
_SIZES = (6, 4, 2)  # features, hidden units, classes of the small model on which evaluations are judged


def _losses_and_hits(features: Array, labels: Array) -> tuple[Array, Array]:
    """Returns the loss of each row and whether it was classified rightly, by NumPy on one device."""
    values = _small_values()
    hidden = np.maximum(features @ values["hidden_weight"] + values["hidden_bias"], 0)
    normal = (hidden - values["moving_mean"]) / np.sqrt(values["moving_variance"] + 1e-5)
    logits = (normal @ values["logits_weight"] + values["logits_bias"]).astype(np.float64)
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(labels)), labels]
    return losses, np.argmax(logits, axis=1) == labels


def evaluated(features: Array, labels: Array) -> tuple[float, float]:
    """Returns the mean loss and the accuracy, by NumPy on one device."""
    losses, hits = _losses_and_hits(features, labels)
    return float(losses.mean()), float(hits.mean())


def _padded(features: Array, labels: Array) -> tuple[Array, Array]:
    rest = -len(labels) % DEVICES
    return np.pad(features, ((0, rest), (0, 0))), np.pad(labels, (0, rest))


def padding_counted(features: Array, labels: Array) -> tuple[float, float]:
    """Counts the rows that fill up, rows of zeros with the label 0."""
    return evaluated(*_padded(features, labels))


class Mean(Enum):
    """What readers make of the values of all rows, those that fill up included; two of them are mistakes."""

    OF_REVIEWS = "the sum over the reviews, divided by their number"
    SUM_OF_ROWS = "the sum over the rows, divided by the number of reviews"
    OF_ROWS = "the sum over the rows, divided by their number"


def partly_counted(loss: Mean, accuracy: Mean) -> Callable[[Array, Array], tuple[float, float]]:
    """Returns an evaluation that may count the rows that fill up in either of its sums."""

    def mean(values: Array, count: int, how: Mean) -> float:
        rows = values[:count] if how is Mean.OF_REVIEWS else values
        return float(rows.sum()) / (len(rows) if how is Mean.OF_ROWS else count)

    def evaluation(features: Array, labels: Array) -> tuple[float, float]:
        losses, hits = _losses_and_hits(*_padded(features, labels))
        return mean(losses, len(labels), loss), mean(hits, len(labels), accuracy)

    return evaluation


def divided_by_padded(features: Array, labels: Array) -> tuple[float, float]:
    """Divides by the number of rows instead of reviews."""
    share = len(labels) / len(_padded(features, labels)[1])
    loss, accuracy = evaluated(features, labels)
    return loss * share, accuracy * share


def rest_dropped(features: Array, labels: Array) -> tuple[float, float]:
    """Leaves the last reviews out."""
    rows = len(labels) // DEVICES * DEVICES
    return evaluated(features[:rows], labels[:rows])


def mean_of_devices(features: Array, labels: Array) -> tuple[float, float]:
    """Returns the mean over the devices that have a review of the mean of each."""
    rows = len(_padded(features, labels)[1]) // DEVICES
    parts = [slice(start, start + rows) for start in range(0, len(labels), rows)]
    means = np.array([evaluated(features[part], labels[part]) for part in parts])
    return float(means[:, 0].mean()), float(means[:, 1].mean())


def mean_of_batches(size: int) -> Callable[[Array, Array], tuple[float, float]]:
    """Returns an evaluation that gives the mean over batches of `size` rows of the mean of each."""

    def evaluation(features: Array, labels: Array) -> tuple[float, float]:
        parts = [slice(start, start + size) for start in range(0, len(labels), size)]
        means = np.array([evaluated(features[part], labels[part]) for part in parts])
        return float(means[:, 0].mean()), float(means[:, 1].mean())

    return evaluation


def last_repeated(features: Array, labels: Array) -> tuple[float, float]:
    """Fills up with copies of the last review and counts them."""
    rows = np.minimum(np.arange(len(_padded(features, labels)[1])), len(labels) - 1)
    return evaluated(features[rows], labels[rows])


def first_repeated(features: Array, labels: Array) -> tuple[float, float]:
    """Fills up with copies of the first reviews and counts them."""
    rows = np.arange(len(_padded(features, labels)[1])) % len(labels)
    return evaluated(features[rows], labels[rows])


def loss_alone(features: Array, labels: Array) -> float:
    """Returns one of the two numbers."""
    return evaluated(features, labels)[0]


def summed(features: Array, labels: Array) -> tuple[float, float]:
    """Does not divide."""
    loss, accuracy = evaluated(features, labels)
    return loss * len(labels), accuracy * len(labels)


def the_other_way_round(features: Array, labels: Array) -> tuple[float, float]:
    """Gives the accuracy first."""
    loss, accuracy = evaluated(features, labels)
    return accuracy, loss


def _small_values() -> dict[str, Array]:
    values: dict[str, Array] = import_module("course_lib.models.sentiment").initial_values(0, dims=_SIZES)
    random = np.random.default_rng(1)
    values["hidden_bias"] = np.array(random.integers(-4, 5, _SIZES[1]) / 4, np.float32)
    values["logits_bias"] = np.array([0.5, -0.5], np.float32)
    values["moving_mean"] = np.array(random.integers(0, 4, _SIZES[1]) / 4, np.float32)
    values["moving_variance"] = np.array(random.integers(1, 8, _SIZES[1]) / 4, np.float32)
    return values


def some_reviews(random: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Returns features `[count, features] global` and labels `[count] global`."""
    features = random.integers(-4, 5, (count, _SIZES[0])) / 2
    return np.array(features, np.float32), random.integers(0, 2, count)


def some_reviews_and_a_rest(random: np.random.Generator) -> tuple[Array, Array]:
    """Returns features and labels of reviews whose number does not divide by 8."""
    return some_reviews(random, int(random.choice([11, 13, 18, 21])))


def small_model() -> Any:
    """Returns a small model on eight devices."""
    return import_module("course_lib.models.sentiment").MLP(_small_values(), data_parallel(DEVICES))


class Watched:
    """A model that notes whether its devices shared the rows that it was given.

    Attributes:
        asked_to_train: whether it was asked for logits as training computes them.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._calls, self._shared = 0, True
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
        self._calls += 1
        components = import_module("course_lib.dtensor").unpack(inputs)
        self._shared &= all(len(each) == inputs.shape[0] // DEVICES for each in components)
        return self._model.evaluate_logits(inputs)

    def fault(self) -> str | None:
        """Returns what is wrong with the work of the devices, where the values are right."""
        if not self._calls:
            return _("The values are right, but the model was never asked: call model.evaluate_logits.")
        if not self._shared:
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
    if "got a regular tensor" in message or "Expecting a Tensor, got <class 'numpy" in message:
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


def evaluate(model: Any, features: Array, labels: Array) -> tuple[float, float]:
    """Returns the mean loss and the accuracy, computed on eight devices."""
    rows, labels_of_rows = _padded(features, labels)
    weights = np.float32(np.arange(len(rows)) < len(labels))
    losses, hits = each_row(model, rows, labels_of_rows)
    return float(losses @ weights) / len(labels), float(hits @ weights) / len(labels)


def each_row(
    model: Any, rows: Array, labels: Array, *, split: bool = True, compiled: bool = False
) -> tuple[Array, Array]:
    """Returns the loss of each row and whether it was classified rightly, from a model on eight devices."""
    tf, dtensor = start_tensorflow(), import_module("course_lib.dtensor")
    mesh = data_parallel(DEVICES).mesh
    layout = LayoutSpec(["batch", UNSHARDED], mesh) if split else LayoutSpec.replicated(mesh, 2)
    logits_of = tf.function(model.evaluate_logits) if compiled else model.evaluate_logits
    logits = dtensor.to_numpy(logits_of(dtensor.pack(rows, layout)))
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits).numpy()
    return losses, np.asarray(np.argmax(logits, axis=1) == labels, np.float32)


def on_every_device(model: Any, features: Array, labels: Array) -> tuple[float, float]:
    """Lets every device compute all rows."""
    losses, hits = each_row(model, features, labels, split=False)
    return float(losses.mean()), float(hits.mean())


def compiled_on_every_device(model: Any, features: Array, labels: Array) -> tuple[float, float]:
    """Lets every device compute all rows, in a `tf.function`."""
    losses, hits = each_row(model, features, labels, split=False, compiled=True)
    return float(losses.mean()), float(hits.mean())
