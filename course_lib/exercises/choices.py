"""What the reader predicted, in the memory of this kernel alone: a restart forgets it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Choice:
    """The reader's choice of an answer.

    Attributes:
        now: the answer that is chosen now, as the card's state says it; None before any.
        revealed: whether the measured value was shown.
        counted: the answer that stood when the measured value was first shown, None for none; it alone is a
            prediction, and the reader's score counts it.
    """

    now: Any = None
    revealed: bool = False
    counted: Any = None

    def is_late(self, chosen: Any) -> bool:
        """Returns whether an answer is one that was chosen after the measured value was shown."""
        return self.revealed and chosen != self.counted

    def reveal(self) -> None:
        """Notes that the measured value is shown; the first time decides what was predicted."""
        if not self.revealed:
            self.revealed, self.counted = True, self.now


_choices: dict[str, Choice] = {}


def of(question_id: str) -> Choice:
    """Returns the reader's choice for a question."""
    return _choices.setdefault(question_id, Choice())
