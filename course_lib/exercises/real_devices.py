"""Judging distributed code on real devices, where a mistake must not end the process.

TensorFlow is not imported here: `on_devices` starts it when an answer is judged.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow

_OPERATORS = tuple(f"__{side}{name}__" for name in ("add", "sub", "mul", "truediv") for side in ("", "r"))
_FUNCTIONS = ("add", "subtract", "multiply", "divide")


@contextlib.contextmanager
def on_devices(dtypes: Collection[str] = ()) -> Iterator[tuple[Any, Any]]:
    """Starts TensorFlow, and while the block runs refuses what would end the process.

    What an exercise gives `judge` as `run` calls the reader's function in such a block:

        def run(pack_rows, rows, layout):
            with on_devices() as (tf, dtensor):
                packed = pack_rows(tf.constant(rows), dtensor.to_layout(layout))
                return {"layout": dtensor.fetch_layout(packed), "components": dtensor.unpack(packed)}

    Refused are `dtensor.pack` with another number of components than devices or with components of unlike
    shapes, and a new axis in square brackets, `x[:, None]`, on a DTensor or in a `tf.function`.

    Args:
        dtypes: what alone may be packed, such as "float32"; anything where none is given. Where DTensors of
            two types meet in an operation outside `tf.function`, TensorFlow 2.21 ends the process.

    Yields:
        The modules `tensorflow` and `course_lib.dtensor`.

    Raises:
        CourseError: the reader's code did one of these, or a failed exchange between devices has made all
            later ones impossible.
    """
    tf, dtensor = start_tensorflow(), importlib.import_module("course_lib.dtensor")
    aborts = importlib.import_module("course_lib.aborts")
    device = importlib.import_module("tensorflow.dtensor.python.dtensor_device").DTensorDevice
    operators = [
        _replaced(tf.Tensor, name, _checked_operator(vars(tf.Tensor)[name], tf)) for name in _OPERATORS
    ]
    with (
        contextlib.ExitStack() as stack,
        _replaced(device, "pack", _checked_pack(device.pack, dtensor, dtypes)),
        _replaced(tf.Tensor, "__getitem__", _checked_slice(tf.Tensor.__getitem__, tf)),
        _replaced(tf.Variable, "__getitem__", _checked_slice(tf.Variable.__getitem__, tf)),
        aborts.explaining_aborts(),
    ):
        for operator in (*operators, *_checked_functions(tf)):
            stack.enter_context(operator)
        yield tf, dtensor


@contextlib.contextmanager
def _replaced(owner: Any, name: str, function: Callable[..., Any]) -> Iterator[None]:
    original = vars(owner).get(name) or getattr(owner, name)
    setattr(owner, name, function)
    try:
        yield
    finally:
        setattr(owner, name, original)


def _checked_pack(pack: Callable[..., Any], dtensor: Any, dtypes: Collection[str]) -> Callable[..., Any]:
    def checked(device: Any, tensors: Any, layout: Any) -> Any:
        components = list(tensors)
        arrays = [np.asarray(component) for component in components]
        dtensor.layout_spec(layout).of_components(arrays)
        _require_dtype(arrays[0].dtype.name, dtypes)
        return pack(device, components, layout)

    return checked


def _checked_functions(tf: Any) -> list[contextlib.AbstractContextManager[None]]:
    owners = [(owner, name) for owner in (tf, tf.math) for name in _FUNCTIONS]
    return [_replaced(owner, name, _checked_operator(getattr(owner, name), tf)) for owner, name in owners]


def _checked_operator(operator: Callable[..., Any], tf: Any) -> Callable[..., Any]:
    def checked(tensor: Any, other: Any, **named: Any) -> Any:
        eager = tf.executing_eagerly() and isinstance(other, tf.Tensor)
        if eager and tf.experimental.dtensor.is_dtensor(tensor):
            _require_dtype(other.dtype.name, (tensor.dtype.name,))
        return operator(tensor, other, **named)

    return checked


def _require_dtype(found: str, dtypes: Collection[str]) -> None:
    if dtypes and found not in dtypes:
        raise CourseError(
            _("A tensor of the type {dtype} does not fit here.", dtype=found),
            allowed=", ".join(dtypes),
            cure=_(
                "Convert an array with astype, a tensor with tf.cast: where DTensors of two types meet,"
                " TensorFlow can end the process."
            ),
        )


def _checked_slice(slice_of: Callable[..., Any], tf: Any) -> Callable[..., Any]:
    def checked(tensor: Any, index: Any, *others: Any) -> Any:
        entries = index if isinstance(index, tuple) else (index,)
        on_the_host = tf.executing_eagerly() and not tf.experimental.dtensor.is_dtensor(tensor)
        if any(entry is None for entry in entries) and not on_the_host:
            raise CourseError(
                _("A new axis in square brackets, such as `x[:, None]`, can end the process on a DTensor."),
                allowed=_("slices without None or tf.newaxis"),
                cure=_("Write tf.expand_dims(x, axis) or tf.reshape(x, shape)."),
            )
        return slice_of(tensor, index, *others)

    return checked
