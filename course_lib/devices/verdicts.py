"""What DTensor makes of a function: right, refused, or silently wrong, beside TensorFlow without DTensor."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import numpy.typing as npt

from course_lib import i18n, processes
from course_lib.devices import dtensor
from course_lib.devices.graphs import result_and_collectives
from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.messages import last_line
from course_lib.runtime import start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.verdict import DEAD, REFUSED, RIGHT, WRONG, Verdict

tf = start_tensorflow()

EAGER, IN_FUNCTION = WAYS = ("eager", "tf.function")  # how `supported` calls a function
NO_DTENSOR = ("no DTensor",)  # in place of a layout: a result that DTensor had no part in
# Of the largest number of the right result, for sums in another order: float32, and numbers of two bytes.
TOLERANCE, TOLERANCE_OF_HALF = 1e-4, 0.05
_LONGEST = 160  # characters of TensorFlow's message

Array = npt.NDArray[Any]
Function = Callable[..., Any]
# Of a result its global shape, its layout, and what each device holds, `[...] local`; no layout, no DTensor.
_Held = tuple[tuple[int, ...], LayoutSpec | None, list[Array]]


def verdict(
    right: Sequence[Array] | None,
    function: Function,
    tensors: Sequence[Any],
    *,
    compiled: bool,
    coarse: bool = False,
) -> Verdict:
    """Returns what DTensor makes of a function.

    Args:
        right: its results without DTensor, `[...] global`; None where TensorFlow refuses that.
        function: the function.
        tensors: DTensors and DVariables that it is called with.
        compiled: whether it is called within a `tf.function`.
        coarse: whether numbers of two bytes are on the way.
    """
    try:
        found, collectives = _found(function, tensors, compiled)
        held = [_held(each) for each in tf.nest.flatten(found)]
    except Exception as error:  # whatever TensorFlow raises is the answer
        return Verdict(REFUSED, message=last_line(error, _LONGEST))
    if right is None:
        return Verdict(WRONG, message=_("there is a result, and without DTensor an error"))
    if len(held) != len(right):
        return Verdict(WRONG, message=f"{len(held)} results for {len(right)}")
    for whole, each in zip(right, held, strict=True):
        if difference := _difference(each, whole, coarse):
            return Verdict(WRONG, message=difference)
    layouts = (layout for _shape, layout, _components in held)
    told = tuple(NO_DTENSOR if layout is None else layout.sharding_specs for layout in layouts)
    return Verdict(RIGHT, told, collectives)


def _found(function: Function, tensors: Sequence[Any], compiled: bool) -> tuple[Any, tuple[str, ...]]:
    if not compiled:
        return function(*tensors), ()
    mesh = dtensor.fetch_layout(tensors[0]).mesh
    found, seen = result_and_collectives(function, tensors, mesh, combine=True)
    return found, tuple(f"{each.kind} {', '.join(each.mesh_dims)}" for each in seen)


def _held(tensor: Any) -> _Held:
    if not tf.experimental.dtensor.is_dtensor(tensor):
        return tuple(tensor.shape), None, [np.asarray(tensor)]
    return tuple(tensor.shape), dtensor.fetch_layout(tensor), dtensor.unpack(tensor)


def _difference(held: _Held, right: Array, coarse: bool) -> str:
    """Returns how a result differs from the right array, `[...] global`, in a few words; else ""."""
    shape, layout, components = held
    if shape != right.shape:
        return f"shape {shape} for {right.shape}"
    try:
        parts = [right] if layout is None else layout.of(right.shape).split(right)
    except CourseError:
        parts = []  # no such layout divides it, so no two devices hold as much
    if [each.shape for each in components] != [each.shape for each in parts]:
        return f"components {', '.join(str(each.shape) for each in components)} of {right.shape}"
    coarse = coarse or right.dtype.itemsize < np.dtype("float32").itemsize
    largest = max(1.0, float(np.max(np.abs(right.astype("float64")), initial=0.0)))
    limit = largest * (TOLERANCE_OF_HALF if coarse else TOLERANCE)
    wrong = sum(
        int(np.sum(~np.isclose(component, part, rtol=0, atol=limit, equal_nan=True)))
        for component, part in zip(components, parts, strict=True)
    )
    return f"{wrong} of {sum(part.size for part in parts)} numbers differ" if wrong else ""


class Support(dict[str, Verdict]):
    """What DTensor makes of a function, called outside a `tf.function` ("eager") and within one."""

    def __repr__(self) -> str:
        return "\n".join(f"{way}: {found}" for way, found in self.items())


def supported(function: Function, *tensors: Any) -> Support:
    """Returns whether DTensor gives what TensorFlow gives without it, tried in processes of their own.

    Args:
        function: a function of the tensors, such as `lambda x: tf.roll(x, 1, axis=0)`. It may use anything
            beside them but DTensors.
        tensors: DTensors or DVariables, whose layouts are kept.

    Raises:
        CourseError: what is given is no DTensor.
    """
    layouts = [dtensor.fetch_layout(each) for each in tensors]
    given = [(dtensor.to_numpy(each), layout) for each, layout in zip(tensors, layouts, strict=True)]
    sent = cloudpickle.dumps((function, given))
    num_devices = max((layout.mesh.size for layout in layouts), default=1)
    return Support({way: _tried(sent, way, num_devices) for way in WAYS})


def _tried(sent: bytes, way: str, num_devices: int) -> Verdict:
    program = f"import course_lib; course_lib.setup(language={i18n.language()!r}, devices={num_devices}); "
    program += f"from course_lib.devices import verdicts; verdicts.answer({way!r})"
    with tempfile.NamedTemporaryFile() as file:
        file.write(sent)
        file.flush()
        try:
            done = processes.run([sys.executable, "-c", program, file.name])
        except CourseError as late:
            return Verdict(DEAD, message=late.problem)
    if done.returncode:
        return Verdict(DEAD, message=processes.died(done.returncode, done.stderr))
    return Verdict(**json.loads(done.stdout.splitlines()[-1]))


def answer(way: str) -> None:
    """Reads a function and its tensors from the file that is named, and prints the verdict as JSON."""
    function, given = cloudpickle.loads(Path(sys.argv[1]).read_bytes())
    compiled = way == IN_FUNCTION
    right = without_dtensor(function, [tf.constant(value) for value, _layout in given], compiled=compiled)
    tensors = [dtensor.pack(value, layout) for value, layout in given]
    print(json.dumps(asdict(verdict(right, function, tensors, compiled=compiled))))


def without_dtensor(function: Function, tensors: Sequence[Any], *, compiled: bool) -> list[Array] | None:
    """Returns the results of a function as arrays; None where TensorFlow refuses it."""
    called = tf.function(function) if compiled else function
    try:
        return [each.numpy() for each in tf.nest.flatten(called(*tensors))]
    except Exception:  # whatever TensorFlow raises
        return None
