"""The exercise of this lesson: the components that one client of a mesh makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from course_lib.errors import CourseError
from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.values import Array
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow

SIZES = {"batch": 4, "model": 2}
WHOLE = "unsharded"  # the value of DTensor's UNSHARDED


def mesh_of_client(client: int, sizes: Mapping[str, int] = SIZES, clients: int = 2) -> Any:
    """Returns a mesh as one of several clients sees it, who share the devices. Nothing is computed on it."""
    dtensor = start_tensorflow().experimental.dtensor
    ids = np.arange(prod(sizes.values())).reshape(*sizes.values())
    share = ids.size // clients
    names = [f"/job:client/replica:0/task:{at // share}/device:CPU:{at % share}" for at in range(ids.size)]
    own = list(range(share * client, share * (client + 1)))
    return dtensor.Mesh(list(sizes), ids, own, [names[at] for at in own], global_devices=names)


def _parts(
    array: Array, specs: Sequence[str], sizes: Mapping[str, int], devices: Iterable[int]
) -> list[Array]:
    parts = []
    for device in devices:
        place = dict(zip(sizes, np.unravel_index(device, tuple(sizes.values())), strict=True))
        part = array
        for axis, name in enumerate(specs):
            part = part if name == WHOLE else np.split(part, sizes[name], axis)[place[name]]
        parts.append(part)
    return parts


def _mine(
    array: Array, specs: Sequence[str], client: int, sizes: Mapping[str, int], clients: int
) -> list[Array]:
    share = prod(sizes.values()) // clients
    return _parts(array, specs, sizes, range(share * client, share * (client + 1)))


@exercise("one_mesh-mine", right=_mine)
def mine(answer: Callable[..., Any]) -> str | None:
    """The components that one client of a mesh makes."""
    both = [[WHOLE, WHOLE], ["batch", WHOLE], [WHOLE, "model"], ["model", "batch"], ["batch", "model"]]
    other = {"rows": 2, "columns": 3}
    inputs: list[tuple[tuple[int, ...], list[str], Mapping[str, int], int]]
    inputs = [((8, 4), specs, SIZES, 2) for specs in both] + [((8,), [name], SIZES, 2) for name in SIZES]
    inputs += [((12, 6), ["rows", "columns"], other, 2), ((2, 12, 6), [WHOLE, "columns", "rows"], other, 2)]
    inputs += [((8, 4), ["batch", "model"], SIZES, 4)]
    any_mesh = _("It should work for any array and any mesh: ask `layout` for all names and sizes.")
    cases = []
    for shape, specs, sizes, clients in inputs:
        for client in range(clients):
            told = _("client {client}, layout {specs}", client=client, specs=specs)
            array = np.arange(prod(shape)).reshape(shape)
            hint = any_mesh if (sizes, clients) != (SIZES, 2) else ""
            cases.append(Case((array, specs, client, sizes, clients), hint, told))
    misconceptions: dict[Callable[..., Any], str] = {
        lambda array, specs, _client, sizes, _clients: _parts(array, specs, sizes, range(8)): _(
            "You make components for all eight devices. A client makes those of its own devices:"
            " `layout.mesh.local_device_locations()`."
        ),
        lambda array, specs, _client, sizes, clients: _mine(array, specs, 0, sizes, clients): _(
            "That is right for client 0 alone. Where in the mesh are the devices of client 1?"
        ),
        lambda array, specs, *mesh: _mine(array, specs[:1], *mesh): _(
            "You split the first axis only: `layout.sharding_specs` has all."
        ),
    }
    advice = _(
        "For one device: along which mesh dimension is each axis split, and what is its position there?"
    )
    return judge(answer, _mine, cases, run=_components, misconceptions=misconceptions, advice=advice)


def _components(answer: Callable[..., Any], array: Array, specs: Sequence[str], *mesh: Any) -> Any:
    layout = start_tensorflow().experimental.dtensor.Layout(list(specs), mesh_of_client(*mesh))
    found = answer(array, layout)
    if not isinstance(found, (list, tuple)):
        raise CourseError(_("Return a list: a component for each device of the client."))
    return list(found)
