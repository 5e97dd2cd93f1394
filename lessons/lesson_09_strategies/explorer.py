"""The strategy explorer: say what you have, and see the strategy, what lives where, and the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.pictures.figures import Figure, figure
from course_lib.pictures.shapes import Node
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Choice, Group, State
from course_lib.widgets.listings import listings
from lessons.lesson_09_strategies import strategy as specs
from lessons.lesson_09_strategies import strategy_picture as drawings
from lessons.lesson_09_strategies.code import sections_of
from lessons.lesson_09_strategies.strategy import Advice, Situation
from lessons.lesson_09_strategies.strategy_places import places_of


class StrategyExplorer(Explorer):
    """Asks the reader a few questions, and shows the strategy that suits the answers.

    The property `situation` follows the reader's clicks.

    Args:
        situation: the answers shown first.
    """

    name = "strategy"

    def __init__(self, situation: Situation | None = None) -> None:
        super().__init__(asdict(situation or Situation(specs.GPUS)))

    @property
    def situation(self) -> Situation:
        """The reader's answers.

        Raises:
            CourseError: no strategy brings them together.
        """
        return Situation(**self.state)

    def title(self) -> str:
        """Returns its name in the reader's language."""
        return _("Which strategy?")

    def controls(self, state: State, *, page: bool) -> Sequence[Group]:
        """Returns the questions; where variables are is asked only where there is a choice."""
        del page
        names = ["devices", "several_machines", "synchronous", "variables", "loop", "keras"]
        if not _asks_where_variables_are(state):
            names.remove("variables")
        return [
            Group(_questions()[name], [Choice((name,), [(each, _answer(each, name)) for each in options])])
            for name, options in ((name, specs.OFFERED[name]) for name in names)
        ]

    def settled(self, state: State, *, page: bool) -> State:
        """Returns the state, with variables on each device where there is no choice."""
        del page
        asks = _asks_where_variables_are(state)
        return state if asks else {**state, "variables": specs.MIRRORED_VARIABLES}

    def figure(self) -> Figure:
        """Returns the picture of the strategy.

        Raises:
            CourseError: no strategy brings the answers together.
        """
        return figure(self.situation)

    def body(self, state: State, *, page: bool) -> Sequence[Node]:
        """Returns the strategy, why, what lives where, and the program; or why there is none."""
        del page
        try:
            situation = Situation(**state)
        except CourseError as error:
            return [pieces.refusal(error)]
        advice, shown = situation.advice, places_of(situation)
        described = "\n".join(drawings.places_lines(shown))
        picture = pieces.images([drawings.places_drawing(shown)], described)
        return [
            pieces.facts({_("Strategy"): advice.strategy}),
            pieces.spoken("told", advice.rule),
            *([pieces.spoken("verdict", advice.warning)] if advice.warning else []),
            pieces.panel(_("What lives where"), picture, drawings.legend(shown)),
            listings(_program(advice), {"TensorFlow": sections_of(situation)}),
        ]


def _asks_where_variables_are(state: State) -> bool:
    return bool(state["devices"] == specs.GPUS and state["synchronous"] and not state["several_machines"])


def _program(advice: Advice) -> str:
    as_asked = advice.loop == advice.situation.loop
    return _("The program") if as_asked else _("The program, with a custom loop")


def _questions() -> dict[str, str]:
    return {
        "devices": _("Devices of a machine"),
        "several_machines": _("Machines"),
        "synchronous": _("Updates"),
        "variables": _("Variables"),
        "loop": _("Written with"),
        "keras": _("Keras"),
    }


def _answer(value: object, name: str) -> str:
    return {
        ("devices", specs.CPU): "CPU",
        ("devices", specs.GPU): _("one GPU"),
        ("devices", specs.GPUS): _("several GPUs"),
        ("devices", specs.TPU): "TPU",
        ("several_machines", False): _("one"),
        ("several_machines", True): _("several"),
        ("synchronous", True): _("synchronous"),
        ("synchronous", False): _("asynchronous"),
        ("variables", specs.MIRRORED_VARIABLES): _("on each GPU"),
        ("variables", specs.CENTRAL_VARIABLES): _("on the CPU"),
        ("loop", specs.FIT): "fit",
        ("loop", specs.CUSTOM_LOOP): _("a custom loop"),
        ("keras", specs.KERAS_3): "Keras 3",
        ("keras", specs.TF_KERAS): "tf_keras",
    }[name, value]
