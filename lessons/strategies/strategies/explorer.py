"""The strategy explorer: say what you have, and see the strategy, what lives where, and the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _, later
from course_lib.pictures.shapes import Node
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Choice, Group, State
from course_lib.widgets.listings import listings
from lessons.strategies.boxes import scheme_image
from lessons.strategies.strategies import strategy as specs
from lessons.strategies.strategies import strategy_picture as drawings
from lessons.strategies.strategies.code import sections_of
from lessons.strategies.strategies.strategy import Situation


class StrategyExplorer(Explorer):
    """Asks the reader a few questions, and shows the strategy that suits the answers."""

    name = "strategy"
    title = later("Which strategy?")

    def __init__(self) -> None:
        super().__init__(asdict(Situation(specs.GPUS)))

    def controls(self, state: State) -> Sequence[Group]:
        """Returns the questions; where variables are is asked only where there is a choice."""
        has_choice = specs.has_choice_of_variables(**state)
        return [
            Group(heading, [Choice((name,), list(answers.items()))])
            for name, (heading, answers) in _questions().items()
            if name != "variables" or has_choice
        ]

    def settled(self, state: State) -> State:
        """Returns the state, with variables on each device where there is no choice."""
        if specs.has_choice_of_variables(**state):
            return state
        return {**state, "variables": specs.MIRRORED_VARIABLES}

    def body(self, state: State) -> Sequence[Node]:
        """Returns the strategy, why, what lives where, and the program; or why there is none."""
        try:
            situation = Situation(**state)
        except CourseError as error:
            return [pieces.refusal(error)]
        warning, scheme = situation.warning, drawings.scheme_of(situation)
        is_as_asked = situation.advised_loop == situation.loop
        program = _("The program") if is_as_asked else _("The program, with a custom loop")
        return [
            pieces.facts({_("Strategy"): situation.strategy}),
            pieces.spoken("told", situation.rule),
            *([pieces.spoken("verdict", warning)] if warning else []),
            pieces.panel(_("What lives where"), scheme_image(scheme), drawings.legend(scheme)),
            listings(program, {"TensorFlow": sections_of(situation)}),
        ]


def _questions() -> dict[str, tuple[str, dict[Any, str]]]:
    """Returns what is asked, by what it decides: the question, and the text of each answer."""
    devices = {specs.CPU: "CPU", specs.GPU: _("one GPU"), specs.GPUS: _("several GPUs"), specs.TPU: "TPU"}
    places = {specs.MIRRORED_VARIABLES: _("on each GPU"), specs.CENTRAL_VARIABLES: _("on the CPU")}
    return {
        "devices": (_("Devices of a machine"), devices),
        "several_machines": (_("Machines"), {False: _("one"), True: _("several")}),
        "synchronous": (_("Updates"), {True: _("synchronous"), False: _("asynchronous")}),
        "variables": (_("Variables"), places),
        "loop": (_("Written with"), {specs.FIT: "fit", specs.CUSTOM_LOOP: _("a custom loop")}),
        "keras": (_("Keras"), {specs.KERAS_3: "Keras 3", specs.TF_KERAS: "tf_keras"}),
    }
