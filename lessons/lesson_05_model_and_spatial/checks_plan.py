"""Exercise 05-plan: a plan whose devices hold no more bytes, and send no more, than they may."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.real_devices import on_devices
from course_lib.i18n import _
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import Plan, data_parallel, model_parallel, replicated, spatial_parallel
from course_lib.specs.step_communication import step_collectives

SIZES = {"batch": 1_024, "features": 1_200, "hidden": 48, "classes": 2}
MOST_HELD, MOST_SENT = 700_000, 300_000
_LEAST_REVIEWS = SIZES["batch"] * SIZES["features"] * 4 // 8  # float32, over eight devices


def _features(batch: int, feature: int) -> Plan:
    mesh = MeshSpec([("batch", batch), ("feature", feature)])
    return Plan("mine", mesh, {"batch": "batch", "features": "feature"})


def _on_one_dim(*axes: str) -> Plan:
    return Plan("mine", MeshSpec([("x", 8)]), dict.fromkeys(axes, "x"))


@exercise(
    "05-plan",
    right=_features(2, 4),
    also=[Plan("any", MeshSpec([("x", 4), ("y", 2)]), {"batch": "y", "features": "x"})],
    wrong=[
        (data_parallel(8), "614,400 of reviews and 231,368 of variables"),
        (model_parallel(4, 2), "1,228,800 of reviews and 115,688 of variables"),
        (spatial_parallel(), "reviews can still take fewer bytes"),
        (_features(4, 2), "variables have to become smaller"),
        (_on_one_dim("features"), "The most goes to `x W1: all-reduce over x"),
        (_on_one_dim("batch", "hidden"), "The most goes to `x"),
        (_on_one_dim("hidden"), "4,915,200 of reviews"),
        (replicated(8), "4,915,200 of reviews and 231,368"),
        (_features(4, 4), "There is no device"),
        (_on_one_dim("features", "hidden"), "two axes"),
        (_on_one_dim("words"), "lacks"),
        ({"batch": "batch"}, "Answer with a plan"),
    ],
    on_devices=True,
)
def plan_within_limits(answer: Any) -> str | None:
    """A plan for eight devices within a limit of bytes held and one of bytes sent."""
    if not isinstance(answer, Plan):
        return _("Answer with a plan: Plan(name, mesh, splits).")
    reviews, variables = held_on_devices(answer)
    if reviews + variables > MOST_HELD:
        held = _(
            "In bytes, a device holds {held} under this plan: {reviews} of reviews and {variables} of"
            " variables. It may hold {most}.",
            held=f"{reviews + variables:,}",
            reviews=f"{reviews:,}",
            variables=f"{variables:,}",
            most=f"{MOST_HELD:,}",
        )
        return f"{held}\n{_what_to_make_smaller(reviews)}"
    step = step_collectives(answer, SIZES)
    if step.bytes_sent > MOST_SENT:
        largest = max(step.exchanges, key=lambda exchange: exchange.collective.bytes_sent)
        return _(
            "Between steps a device of this plan holds little enough, but it sends too many bytes in a step:"
            " {sent}. It may send {most}. The most goes to `{largest}`.",
            sent=f"{step.bytes_sent:,.0f}",
            most=f"{MOST_SENT:,}",
            largest=largest,
        )
    return None


def _what_to_make_smaller(reviews: int) -> str:
    if reviews > _LEAST_REVIEWS:
        return _("The reviews can still take fewer bytes: do all eight devices hold different parts of them?")
    return _(
        "The reviews are as small as eight devices can make them. The variables have to become smaller: of"
        " the axes that the reviews have, which one is also an axis of `W1`?"
    )


def held_on_devices(plan: Plan) -> tuple[int, int]:
    """Returns how many bytes of a batch and of the model's variables a real device holds, at the most.

    Raises:
        CourseError: the plan does not fit the model or the devices.
    """
    with on_devices() as (_tf, dtensor):
        sentiment = import_module("course_lib.models.sentiment")
        model = sentiment.MLP(sentiment.initial_values(), plan)
        rows = np.zeros((SIZES["batch"], SIZES["features"]), np.float32)
        batch = dtensor.unpack(dtensor.pack(rows, plan.layout(("batch", "features"))))
        variables = [dtensor.unpack(getattr(model, name)) for name in model.spec.variables]
    return _most_bytes(batch), sum(_most_bytes(components) for components in variables)


def _most_bytes(components: list[Any]) -> int:
    return max(int(component.nbytes) for component in components)
