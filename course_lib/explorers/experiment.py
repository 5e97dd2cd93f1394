"""Experiments: explorers with a button that runs the real thing and puts it beside the prediction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.messages import last_line
from course_lib.pictures.shapes import Node
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import State


class Experiment(Explorer):
    """Shows what follows from a choice, and after a press of its button what really does.

    Args:
        observe: what runs for real. Without it the button is disabled.
        state: what is chosen first.

    Attributes:
        example: how it is made with a function.
        button: what stands on the button.
        waiting: what is said while it runs.
        repeats: whether a press runs again what has run, since it measures.
    """

    example: ClassVar[str]
    button: Any
    waiting: Any
    repeats: ClassVar[bool] = False

    def __init__(self, observe: Callable[..., Any] | None, state: State) -> None:
        self._observe = observe
        self._latest: tuple[State, Any, str] = ({}, None, "")  # a choice, its result, what is said of it
        super().__init__(state)

    @abstractmethod
    def result(self, state: State) -> Any:
        """Returns what a choice really gives, by the function that the explorer was made with.

        Raises:
            CourseError: the choice is illegal.
        """

    @abstractmethod
    def verdict(self, result: Any) -> str:
        """Returns what to say of a result."""

    @abstractmethod
    def above(self, state: State, result: Any) -> Sequence[Node]:
        """Returns what stands above the button; the result is None where there is none.

        Raises:
            CourseError: the choice is illegal.
        """

    def below(self, state: State) -> Sequence[Node]:  # noqa: ARG002 - others have nothing there
        """Returns what stands below the button."""
        return []

    def why_not(self, state: State) -> str:  # noqa: ARG002 - others run not every choice
        """Returns why a legal choice cannot be run, or "" where it can."""
        return "" if self._observe else _("The button needs a function: {example}.", example=self.example)

    def body(self, state: State) -> Sequence[Node]:
        """Returns what is shown, the button and the verdict; or why the choice is illegal."""
        return self._around_the_button(state, self.why_not, *self._of(state))

    def page_body(self, state: State) -> Sequence[Node]:
        """Returns the same with a button that no kernel answers."""
        return self._around_the_button(state, why_not_on_a_page)

    def heard(self, name: str) -> None:  # noqa: ARG002 - it has one button
        """Runs the choice and shows what came of it, or what went wrong."""
        state = self.state
        if self._of(state)[0] is not None and not self.repeats:
            return
        self._say(state, self.waiting)
        try:
            if why_not := self.why_not(state):  # it was chosen while the button was still enabled
                self._say(state, f"✗ {why_not}")
            else:
                result = self.result(state)
                self._say(state, self.verdict(result), result)
        except Exception as error:
            self._say(state, f"✗ {error if isinstance(error, CourseError) else last_line(error)}")

    def _around_the_button(
        self, state: State, why_not: Callable[[State], str], result: Any = None, says: str = ""
    ) -> Sequence[Node]:
        try:
            above, below = self.above(state, result), self.below(state)
        except CourseError as error:
            illegal = _("Nothing to run: the choice is illegal.")
            return [pieces.refusal(error), *pieces.button(self.button, why_not=illegal)]
        button = pieces.button(self.button, why_not=why_not(state))
        return [*above, *button, pieces.spoken("verdict", says), *below]

    def _of(self, state: State) -> tuple[Any, str]:
        """Returns the latest result of a choice, if it is of this one, and what is said of it."""
        latest, result, says = self._latest
        return (result, says) if latest == state else (None, "")

    def _say(self, state: State, says: str, result: Any = None) -> None:
        self._latest = state, result, says
        self.show()


def why_not_on_a_page(_state: State | None = None) -> str:
    """Returns why a button of a page does nothing: no kernel answers there."""
    return _("The button needs a running notebook: open the lesson in Jupyter or Colab.")
