"""Exercise 06-gather: the whole variables of a model, put together from what its devices hold."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise
from course_lib.exercises.evaluations import small_values
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.real_devices import on_devices
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import Plan, data_parallel, model_parallel, spatial_parallel
from course_lib.specs.sharding import Sharding

Array = npt.NDArray[Any]
Values = dict[str, Array]
Combine = Callable[[list[Array], Sharding], Array]

_PLANS = (
    data_parallel(8),
    model_parallel(4, 2),
    spatial_parallel(2, 2, 2),
    Plan("turned", MeshSpec([("model", 2), ("feature", 2)]), {"features": "feature", "hidden": "model"}),
)


def gathered(model: Any) -> Values:
    """Returns each variable of a model, put together on the host."""
    dtensor = import_module("course_lib.dtensor")
    made = {}
    for name in model.spec.variables:
        variable = getattr(model, name)
        sharding = dtensor.fetch_layout(variable).of(variable.shape)
        made[name] = _by_place(dtensor.unpack(variable), sharding)
    return made


def _by_place(components: list[Array], sharding: Sharding) -> Array:
    whole = np.empty(sharding.global_shape, components[0].dtype)
    for device_id, component in enumerate(components):
        whole[sharding.shards[device_id]] = component
    return whole


def _asked_of_the_model(model: Any) -> Values:
    return dict(model.values())


def _side_by_side(components: list[Array], sharding: Sharding) -> Array:
    return np.concatenate(components)


def _first(components: list[Array], sharding: Sharding) -> Array:
    return components[0]


def _added(components: list[Array], sharding: Sharding) -> Array:
    whole = np.zeros(sharding.global_shape, np.float32)
    for device_id, component in enumerate(components):
        whole[sharding.shards[device_id]] += component
    return whole


def _mean(components: list[Array], sharding: Sharding) -> Array:
    return np.asarray(np.mean(components, axis=0))


def _of_components(combine: Combine) -> Callable[[Any], Values]:
    """Returns an answer that makes a variable of its components in another way."""

    def gather(model: Any) -> Values:
        dtensor = import_module("course_lib.dtensor")
        variables = {name: getattr(model, name) for name in model.spec.variables}
        return {
            name: combine(dtensor.unpack(each), dtensor.fetch_layout(each).of(each.shape))
            for name, each in variables.items()
        }

    return gather


def _misconception(combine: Combine) -> Callable[[Values, Plan], Values]:
    """Returns what such an answer gives for a model with these values under a plan."""

    def of_values(values: Values, plan: Plan) -> Values:
        model_spec = import_module("course_lib.models.sentiment").MLP.spec
        made = {}
        for name, value in values.items():
            sharding = plan.layout(model_spec.variables[name].axes).of(value.shape)
            made[name] = combine(sharding.split(value), sharding)
        return made

    return of_values


def _trained_only(model: Any) -> Values:
    return {name: value for name, value in gathered(model).items() if name in model.trained}


def _left_on_the_mesh(model: Any) -> dict[str, Any]:
    return {name: getattr(model, name) for name in model.spec.variables}


def _run(gather: Callable[[Any], Any], values: Values, plan: Plan) -> Any:
    with on_devices():
        model = import_module("course_lib.models.sentiment").MLP(values, plan)
        return gather(model)


def _one_by_one(model: Any) -> Values:
    """Writes each block once, and takes the first device that holds it."""
    dtensor = import_module("course_lib.dtensor")
    made = {}
    for name in model.spec.variables:
        variable = getattr(model, name)
        sharding = dtensor.fetch_layout(variable).of(tuple(variable.shape))
        made[name] = sharding.assemble(dtensor.unpack(variable))
    return made


@exercise(
    "06-gather",
    right=gathered,
    also=[_one_by_one, _asked_of_the_model],
    wrong=[
        (_of_components(_side_by_side), "one after the other"),
        (_of_components(_first), "first device"),
        (_of_components(_added), "once for each device"),
        (_of_components(_mean), "the mean"),
        (_trained_only, "moving_mean"),
        (_left_on_the_mesh, "still a DTensor"),
        (lambda model: None, "return"),
        (lambda model: list(gathered(model).values()), "dictionary"),
        (lambda model: {name: 2 * value for name, value in gathered(model).items()}, "`sharding.shards[d]`"),
        ({"hidden_weight": 1}, "function"),
    ],
    on_devices=True,
)
def gather(answer: Callable[[Any], Any]) -> str | None:
    """The whole variables of a model that lies on a mesh."""
    values = small_values()
    given: list[Any] = []

    def run(function: Callable[[Any], Any], *inputs: Any) -> Any:
        given.append(_run(function, *inputs))
        return given[-1]

    hint = judge(
        answer,
        lambda values, plan: values,
        [Case((values, plan), told=_("a model on the mesh {mesh}", mesh=plan.mesh)) for plan in _PLANS],
        misconceptions={
            _misconception(_side_by_side): _(
                "This lays the components one after the other, in the order of the devices. Which part of the"
                " whole does each of them hold?"
            ),
            _misconception(_first): _(
                "This is what the first device holds. Where a variable is split, others hold the rest."
            ),
            _misconception(_added): _(
                "This adds a block once for each device that holds it. Copies are equal: write them over each"
                " other."
            ),
            _misconception(_mean): _(
                "This is the mean of the components. They are different parts, except where they are copies."
            ),
        },
        run=run,
        tolerance=0.0,
        advice=_("Which part of the whole does device `d` hold? `sharding.shards[d]` says it."),
    )
    if hint:
        return (_hint_on_names(given[0], values) or hint) if given else hint
    return _hint_on_what_stays(given)


def _hint_on_what_stays(given: list[Any]) -> str | None:
    """Returns a hint where a variable was handed back as it lies on the mesh: the check can read those."""
    is_dtensor = start_tensorflow().experimental.dtensor.is_dtensor
    names = (name for made in given for name, value in made.items() if is_dtensor(value))
    name = next(names, None)
    if name is None:
        return None
    return _(
        "`{name}` is still a DTensor on its mesh. Put its components together, and return NumPy arrays.",
        name=name,
    )


def _hint_on_names(made: Any, values: Values) -> str | None:
    if made is None:
        return None
    if not isinstance(made, dict):
        return _("Return a dictionary: for the name of each variable an array.")
    missing = next((name for name in values if name not in made), None)
    if missing:
        return _("The dictionary needs {name!r}, too: serving needs every variable.", name=missing)
    return None
