"""What code checks in lesson 06; importing it registers the exercise of the server too."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise
from course_lib.exercises.evaluations import DEVICES, logits_of, small_values, softmax, some_reviews
from course_lib.exercises.evaluations_on_devices import Watched, called, small_model
from course_lib.exercises.judging import Case, judge
from course_lib.exercises.real_devices import on_devices
from course_lib.i18n import _
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import Plan, data_parallel, model_parallel, spatial_parallel
from course_lib.specs.sharding import Sharding
from lessons.lesson_06_save_and_serve import checks_server  # noqa: F401 - it registers an exercise

Array = npt.NDArray[Any]
Values = dict[str, Array]
Combine = Callable[[list[Array], Sharding], Array]

_PLANS = (
    data_parallel(8),
    model_parallel(4, 2),
    spatial_parallel(2, 2, 2),
    Plan("turned", MeshSpec([("model", 2), ("feature", 2)]), {"features": "feature", "hidden": "model"}),
)


def _combined(combine: Combine) -> Callable[[Values, Plan], Values]:
    """Returns what an answer gives that makes each variable of its components in this way."""

    def of_values(values: Values, plan: Plan) -> Values:
        variables = import_module("course_lib.models.sentiment").MLP.spec.variables
        shardings = {name: plan.layout(variables[name].axes).of(values[name].shape) for name in values}
        return {name: combine(each.split(values[name]), each) for name, each in shardings.items()}

    return of_values


def _added(components: list[Array], sharding: Sharding) -> Array:
    whole = np.zeros(sharding.global_shape, np.float32)
    for device_id, component in enumerate(components):
        whole[sharding.shards[device_id]] += component
    return whole


@exercise("06-gather", right=lambda model: model.values(), on_devices=True)
def gather(answer: Callable[[Any], Any]) -> str | None:
    """The whole variables of a model that lies on a mesh."""
    values, hints = small_values(), []

    def run(function: Callable[[Any], Any], values: Values, plan: Plan) -> Any:
        with on_devices() as (tf, _dtensor):
            made = function(import_module("course_lib.models.sentiment").MLP(values, plan))
            hints.append(_hint_on_names(made, values, tf))
            return {name: made[name] for name in values if name in made} if isinstance(made, dict) else made

    hint = judge(
        answer,
        lambda values, plan: values,
        [Case((values, plan), told=_("a model on the mesh {mesh}", mesh=plan.mesh)) for plan in _PLANS],
        misconceptions={
            _combined(lambda components, sharding: np.concatenate(components)): _(
                "This lays the components one after the other, in the order of the devices. Which part of the"
                " whole does each of them hold?"
            ),
            _combined(lambda components, sharding: components[0]): _(
                "This is what the first device holds. Where a variable is split, others hold the rest."
            ),
            _combined(_added): _(
                "This adds a block once for each device that holds it. Copies are equal: write them over each"
                " other."
            ),
        },
        run=run,
        tolerance=0.0,
        advice=_("Which part of the whole does device `d` hold? `sharding.shards[d]` says it."),
    )
    return next(filter(None, hints), hint)


def _hint_on_names(made: Any, values: Values, tf: Any) -> str | None:
    """Returns which variable of a dictionary is missing or still lies on the mesh; None if none does."""
    for name in values if isinstance(made, dict) else ():
        if name not in made:
            return _("The dictionary needs {name!r}, too: serving needs every variable.", name=name)
        if tf.experimental.dtensor.is_dtensor(made[name]):
            return _(
                "`{name}` is still a DTensor on its mesh. Put its components together, and return NumPy"
                " arrays.",
                name=name,
            )
    return None


def answered_on_mesh(model: Any, rows: Array) -> Array:
    """Returns the probabilities of each row, having given each device an eighth of the rows."""
    dtensor = import_module("course_lib.dtensor")
    layout = data_parallel(DEVICES).layout(("batch", "features"))
    logits = model.evaluate_logits(dtensor.pack(_filled_up(rows), layout))
    return softmax(dtensor.to_numpy(logits)[: len(rows)])


def _filled_up(rows: Array) -> Array:
    return np.pad(rows, ((0, -len(rows) % DEVICES), (0, 0)))


def _served(rows: Array) -> Array:
    return softmax(logits_of(small_values(), rows))


@exercise("06-on-mesh", right=answered_on_mesh, on_devices=True)
def on_mesh(answer: Callable[[Any, Array], Any]) -> str | None:
    """The probabilities of rows, whether their number divides by 8 or not, from a model on eight devices."""
    model, random = Watched(small_model()), np.random.default_rng(6)
    cases = [Case((some_reviews(random, count)[0],)) for count in (11, 13, 21, 3, 1, 8, 16)]
    hint = judge(
        answer,
        _served,
        cases,
        misconceptions={
            lambda rows: _served(_filled_up(rows)): _(
                "There is an answer for each row that was filled up, too. Return those of the request alone."
            ),
            lambda rows: logits_of(small_values(), rows): _(
                "These are the logits. Probabilities are their softmax."
            ),
            lambda rows: _served(rows[: len(rows) // DEVICES * DEVICES]): _(
                "A server answers every row: fill the rows up instead of leaving some out."
            ),
        },
        run=lambda function, rows: called(function, model, rows),
    )
    if hint and model.asked_to_train:
        return _(
            "Training normalises a row with the moments of its batch, and here rows of zeros are in the"
            " batch. Ask `model.evaluate_logits`, which takes the moving moments."
        )
    return hint or model.fault(sum(len(case.inputs[0]) for case in cases))


def _of_the_last_bias(values: Values, row: Array) -> Array:
    return softmax(values["logits_bias"])


def _single_rows() -> list[Case]:
    """Returns models with 3 features, 4 hidden units and 2 classes, each with a row."""
    random = np.random.default_rng(0)
    shapes = {"hidden_weight": (3, 4), "hidden_bias": (4,), "logits_weight": (4, 2), "moving_mean": (4,)}
    told = _("a model of 3 features, 4 hidden units and 2 classes, and a row of 3 numbers")
    cases = []
    for _number in range(20):
        values = {name: random.integers(-8, 9, shape) / 4 for name, shape in shapes.items()}
        values["logits_bias"] = np.array([0.25, -0.5]) + np.round(random.normal(size=2), 1)
        values["moving_variance"] = random.integers(1, 8, 4) / 4
        cases.append(Case((values, random.integers(1, 5, 3) / 2), told=told))
    return cases


@exercise("06-alone", right=_of_the_last_bias)
def alone(answer: Callable[..., Any]) -> str | None:
    """What a model answers for a single row where it normalises with the moments of the batch."""
    return judge(
        answer,
        _of_the_last_bias,
        _single_rows(),
        misconceptions={
            lambda values, row: softmax(logits_of(values, row)): _(
                "These are the answers with the moving moments. Here the batch's own are asked for."
            ),
            lambda values, row: values["logits_bias"]: _("These are logits. Take the softmax of them."),
            lambda values, row: np.full(2, np.nan): _(
                "This is 0 / 0 somewhere. Is 0.00001 added to the variance, under the root? And does the"
                " variance divide by the number of rows, not by one less?"
            ),
        },
    )
