"""Explorers with a button that makes the choice real, and puts what devices do beside the prediction."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import State


class ObservingExplorer(Explorer):
    """Lets the reader choose, and asks real devices at a press of the button, once a choice.

    Args:
        state: what is chosen first.
    """

    def __init__(self, state: State) -> None:
        self._reality: tuple[State, Any] | None = None  # what was seen or said, with the state that it is of
        super().__init__(state)

    @abstractmethod
    def waiting(self) -> str:
        """Returns what is said until the devices answer."""

    @abstractmethod
    def compared(self) -> Any:
        """Returns what the devices do with the choice, beside the prediction.

        Raises:
            CourseError: the choice is illegal, or the explorer cannot ask devices.
        """

    def reality(self, state: State) -> Any:
        """Returns the comparison for a state; a text while it is awaited or if it failed, "" before."""
        return self._reality[1] if self._reality and self._reality[0] == state else ""

    def observe_choice(self) -> Any:
        """Asks the devices, shows what they did in the explorer, and returns the comparison.

        Raises:
            CourseError: the choice is illegal, or the explorer cannot ask devices.
        """
        state = self.state
        self._tell(state, compared := self.compared())
        return compared

    def pressed(self) -> None:
        """Asks the devices and shows what they did, or what went wrong, in the explorer."""
        state = self.state
        if not isinstance(self.reality(state), str):
            return
        self._tell(state, self.waiting())
        try:
            self.observe_choice()
        except CourseError as error:
            self._tell(state, f"✗ {error}")
        except Exception as error:
            self._tell(state, f"✗ {type(error).__name__}: {error}")

    def _tell(self, state: State, reality: object) -> None:
        self._reality = (state, reality)
        self.show()


def why_not_on_a_page() -> str:
    """Returns why the button is disabled on a page without a kernel."""
    return _("The button needs a running notebook: open this lesson in Jupyter or Colab.")
