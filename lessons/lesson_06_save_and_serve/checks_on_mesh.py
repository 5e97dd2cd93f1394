"""Exercise 06-on-mesh: a request of any number of reviews, answered by eight devices."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from course_lib.exercises.checks import exercise
from course_lib.exercises.evaluations import DEVICES, small_values, some_reviews
from course_lib.exercises.evaluations_on_devices import Watched, called, small_model
from course_lib.exercises.judging import Case, judge
from course_lib.i18n import _
from course_lib.runtime import start_tensorflow
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.plan import data_parallel
from lessons.lesson_06_save_and_serve import small_classifier

Array = npt.NDArray[Any]
Answer = Callable[[Any, Array], Any]


def _filled_up(rows: Array) -> Array:
    return np.pad(rows, ((0, -len(rows) % DEVICES), (0, 0)))


def _packed(rows: Array, *, split: bool = True) -> Any:
    mesh = data_parallel(DEVICES).mesh
    layout = LayoutSpec(["batch", "unsharded"], mesh) if split else LayoutSpec.replicated(mesh, 2)
    return import_module("course_lib.dtensor").pack(rows, layout)


def _read(tensor: Any) -> Array:
    return np.asarray(import_module("course_lib.dtensor").to_numpy(tensor))


def answered(model: Any, rows: Array) -> Array:
    """Returns the probabilities of each row, having given each device an eighth of the rows."""
    logits = model.evaluate_logits(_packed(_filled_up(rows)))
    return _read(start_tensorflow().nn.softmax(logits))[: len(rows)]


def _softmax_on_the_host(model: Any, rows: Array) -> Array:
    logits = _read(model.evaluate_logits(_packed(_filled_up(rows))))
    return small_classifier.softmax(logits)[: len(rows)]


def _uncut(model: Any, rows: Array) -> Array:
    return _softmax_on_the_host(model, _filled_up(rows))


def _not_filled_up(model: Any, rows: Array) -> Array:
    return small_classifier.softmax(_read(model.evaluate_logits(_packed(rows))))


def _logits(model: Any, rows: Array) -> Array:
    return _read(model.evaluate_logits(_packed(_filled_up(rows))))[: len(rows)]


def _as_in_training(model: Any, rows: Array) -> Array:
    return small_classifier.softmax(_read(model(_packed(_filled_up(rows)))))[: len(rows)]


def _on_every_device(model: Any, rows: Array) -> Array:
    return small_classifier.softmax(_read(model.evaluate_logits(_packed(rows, split=False))))


def _rest_dropped(model: Any, rows: Array) -> Array:
    whole = len(rows) // DEVICES * DEVICES
    return _softmax_on_the_host(model, rows[:whole])


def _last_rows(model: Any, rows: Array) -> Array:
    return _uncut(model, rows)[-len(rows) :]


def _cut_by_what_was_filled_up(model: Any, rows: Array) -> Array:
    """Leaves out as many rows at the end as were filled up; none, and `[:-0]` is empty."""
    return _uncut(model, rows)[: -(-len(rows) % DEVICES)]


def _good_alone(model: Any, rows: Array) -> Array:
    return np.asarray(answered(model, rows)[:, 1])


def _of_values(function: Callable[[small_classifier.Values, Array], Array]) -> Callable[[Array], Array]:
    return lambda rows: function(small_values(), rows)


def _cases() -> list[Case]:
    random = np.random.default_rng(6)
    few = _("With so few rows some devices get nothing but rows that fill up.")
    even = _("The devices share these rows evenly. How many rows were filled up here?")
    hints = {11: "", 13: "", 21: "", 3: few, 1: few, 8: even, 16: even}
    return [Case((some_reviews(random, count)[0],), hint) for count, hint in hints.items()]


@exercise(
    "06-on-mesh",
    right=answered,
    also=[_softmax_on_the_host],
    wrong=[
        (_uncut, "filled up"),
        (_last_rows, "stand at the end"),
        (_cut_by_what_was_filled_up, "share these rows evenly"),
        (_logits, "softmax"),
        (_as_in_training, "moving"),
        (_not_filled_up, "fails for"),
        (_on_every_device, "every device"),
        (_rest_dropped, "every row"),
        (_good_alone, "both"),
        (lambda model, rows: small_classifier.served(small_values(), rows), "never asked"),
        (lambda model, rows: None, "return"),
        (lambda model, rows: model.evaluate_logits(rows), "not packed"),
        ((0.5, 0.5), "function"),
    ],
    on_devices=True,
)
def on_mesh(answer: Answer) -> str | None:
    """The probabilities of rows, whether their number divides by 8 or not, from a model on eight devices."""
    model = Watched(small_model())
    served = _of_values(small_classifier.served)

    def run(function: Answer, rows: Array) -> Any:
        return called(function, model, rows)

    hint = judge(
        answer,
        served,
        _cases(),
        misconceptions={
            lambda rows: served(_filled_up(rows)): _(
                "There is an answer for each row that was filled up, too. Return those of the request alone."
            ),
            lambda rows: served(_filled_up(rows))[-len(rows) :]: _(
                "The rows that fill up stand at the end: their answers, too."
            ),
            _of_values(small_classifier.served_logits): _(
                "These are the logits. Probabilities are their softmax."
            ),
            lambda rows: served(rows[: len(rows) // DEVICES * DEVICES]): _(
                "A server answers every row: fill the rows up instead of leaving some out."
            ),
            lambda rows: served(rows)[:, 1]: _("Return both probabilities of each row, bad first."),
        },
        run=run,
        advice=_("Compare with the rows one by one: which answer belongs to which?"),
    )
    if hint and model.asked_to_train:
        return _(
            "Training normalises a row with the moments of its batch, and here rows of zeros are in the"
            " batch. Ask `model.evaluate_logits`, which takes the moving moments."
        )
    return hint or model.fault()
