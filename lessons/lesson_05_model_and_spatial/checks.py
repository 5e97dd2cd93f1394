"""What code checks in lesson 05: layouts of two layers, and a plan; importing it registers the others too."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.kinds import wrong_layout
from course_lib.exercises.real_devices import on_devices
from course_lib.i18n import _, join_sentences
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.plan import Plan
from course_lib.specs.step_communication import step_collectives
from lessons.lesson_05_model_and_spatial import checks_components  # noqa: F401 - it registers two exercises

_MESH = MeshSpec([("batch", 2), ("model", 4)])
_LAYOUTS = {
    "W1": LayoutSpec([UNSHARDED, "model"], _MESH),
    "b1": LayoutSpec(["model"], _MESH),
    "y1": LayoutSpec(["batch", "model"], _MESH),
    "W2": LayoutSpec(["model", UNSHARDED], _MESH),
    "b2": LayoutSpec([UNSHARDED], _MESH),
    "y2": LayoutSpec(["batch", UNSHARDED], _MESH),
}

SIZES = {"batch": 1_024, "features": 1_200, "hidden": 48, "classes": 2}
MOST_HELD, MOST_SENT = 700_000, 300_000
_LEAST_REVIEWS = SIZES["batch"] * SIZES["features"] * 4 // 8  # float32, over eight devices


@exercise("05-layouts", right=_LAYOUTS)
def layouts(answer: dict[str, Any]) -> str | None:
    """The layouts of two dense layers of which the first one's units are split."""
    rows = _("The rows of `{name}` are the examples: which dimension splits these?", name="y2")
    whole = _("In this plan nothing splits `second`: every device of a replica has all.")
    hints = {
        "W1": _("`W1` has the axes inputs first, then `hidden`. Which of them is split over `model`?"),
        "b1": _("`b1` is added to `x W1`. Whoever holds a column of that needs the entry of `b1` for it."),
        "y1": _("`y1` is `x W1 + b1`, so its columns are `hidden`, like those of `W1`."),
        "W2": _("`y1 W2` sums over `hidden`. Which axis of `W2` is that, and what splits it in `y1`?"),
        "b2": whole,
        "y2": join_sentences([rows, whole]),
    }
    mesh_hint = _("Use `mesh`, with its dimensions batch of 2 and model of 4.")
    return wrong_layout(answer, _LAYOUTS, hints, mesh_hint)


@exercise(
    "05-plan",
    right=Plan("mine", MeshSpec([("batch", 2), ("feature", 4)]), {"batch": "batch", "features": "feature"}),
    on_devices=True,
)
def plan_within_limits(answer: Any) -> str | None:
    """A plan for eight devices within a limit of bytes held and one of bytes sent."""
    if not isinstance(answer, Plan):
        return _("Answer with a plan: Plan(name, mesh, splits).")
    reviews, variables = _held_on_devices(answer)
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
        return _(
            "Between steps a device of this plan holds little enough, but it sends too many bytes in a step:"
            " {sent}. It may send {most}. The most goes to `{largest}`.",
            sent=f"{step.bytes_sent:,.0f}",
            most=f"{MOST_SENT:,}",
            largest=max(step.exchanges, key=lambda exchange: exchange.collective.bytes_sent),
        )
    return None


def _what_to_make_smaller(reviews: int) -> str:
    if reviews > _LEAST_REVIEWS:
        return _("The reviews can still take fewer bytes: do all eight devices hold different parts of them?")
    return _(
        "The reviews are as small as eight devices can make them. The variables have to become smaller: of"
        " the axes that the reviews have, which one is also an axis of `W1`?"
    )


def _held_on_devices(plan: Plan) -> tuple[int, int]:
    """Returns how many bytes of a batch and of the model's variables a real device holds, at the most."""
    with on_devices() as (_tf, dtensor):
        sentiment = import_module("course_lib.models.sentiment")
        model = sentiment.MLP(sentiment.initial_values(), plan)
        rows = np.zeros((SIZES["batch"], SIZES["features"]), np.float32)
        batch = dtensor.unpack(dtensor.pack(rows, plan.layout(("batch", "features"))))
        variables = [dtensor.unpack(getattr(model, name)) for name in model.spec.variables]
    return _most_bytes(batch), sum(map(_most_bytes, variables))


def _most_bytes(components: list[Any]) -> int:
    return max(int(component.nbytes) for component in components)
