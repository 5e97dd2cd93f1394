"""Explorers with a button that runs the real thing and puts it beside the prediction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.pictures.shapes import Node
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import State


class ObservingExplorer(Explorer):
    """Shows what follows from a choice, and after a press of its button what really does.

    Args:
        observe: what runs for real. Without it the button is disabled.
        state: what is chosen first.
    """

    example: ClassVar[str]  # how it is made with a function
    repeats: ClassVar[bool] = (
        False  # whether it measures: a press runs again what has run, and no page keeps it
    )

    def __init__(self, observe: Callable[..., Any] | None, state: State) -> None:
        self._observe = observe
        self._latest: tuple[State, Any, str] = ({}, None, "")  # a choice, what was seen, what is said of it
        super().__init__(state)

    @abstractmethod
    def button_text(self) -> str:
        """Returns what stands on the button."""

    @abstractmethod
    def waiting(self) -> str:
        """Returns what is said while it runs."""

    @abstractmethod
    def run_for_real(self, state: State) -> Any:
        """Runs what was chosen, with the function that the explorer was given.

        Raises:
            CourseError: the choice is illegal.
        """

    @abstractmethod
    def verdict(self, seen: Any) -> str:
        """Returns what to say of what was seen."""

    @abstractmethod
    def shown(self, state: State, seen: Any, *, page: bool) -> tuple[Sequence[Node], Sequence[Node]]:
        """Returns what stands above the button and what below it; `seen` is None where nothing was.

        Raises:
            CourseError: the choice is illegal.
        """

    def why_not(self, state: State) -> str:  # noqa: ARG002 - other explorers run not every choice
        """Returns why a legal choice cannot be run, or "" where it can."""
        return "" if self._observe else _("The button needs a function: {example}.", example=self.example)

    def body(self, state: State, *, page: bool) -> Sequence[Node]:
        """Returns what is shown, the button and the verdict; or why the choice is illegal."""
        seen, says = self._of(state)
        try:
            above, below = self.shown(state, seen, page=page)
        except CourseError as error:
            illegal = _("Nothing to run: the choice is illegal.")
            return [pieces.refusal(error), *pieces.button(self.button_text(), why_not=illegal)]
        why_not = why_not_on_a_page() if page else self.why_not(state)
        button = pieces.button(self.button_text(), why_not=why_not)
        return [*above, *button, pieces.spoken("verdict", "" if page and self.repeats else says), *below]

    def pressed(self) -> None:
        """Runs the choice and shows what came of it, or what went wrong."""
        state = self.state
        if self._of(state)[0] is not None and not self.repeats:
            return
        self._say(state, self.waiting())
        seen = None
        try:
            if why_not := self.why_not(state):  # it was chosen while the button was still enabled
                says = f"✗ {why_not}"
            else:
                real = self.run_for_real(state)
                says, seen = self.verdict(real), real
        except CourseError as error:
            says = f"✗ {error}"
        except Exception as error:
            says = f"✗ {type(error).__name__}: {error}"
        self._say(state, says, seen)

    def _of(self, state: State) -> tuple[Any, str]:
        """Returns what was last seen of a choice, if it is this one, and what is said of it."""
        latest, seen, says = self._latest
        return (seen, says) if latest == state else (None, "")

    def _say(self, state: State, says: str, seen: Any = None) -> None:
        self._latest = state, seen, says
        self.show()


def why_not_on_a_page() -> str:
    """Returns why a button of a page does nothing: no kernel answers there."""
    return _("The button needs a running notebook: open the lesson in Jupyter or Colab.")
