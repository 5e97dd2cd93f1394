"""The way of one text through a model: its tokens, its row of numbers, the layers behind."""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.specs.drawing import DrawsItself

UNKNOWN = 0  # the column of all tokens that are not in the vocabulary


@dataclass(frozen=True)
class TextPath(DrawsItself):
    """What becomes of a text on its way to a model's answer.

    Attributes:
        text: as it was typed.
        tokens: its words in lower case, without punctuation, in their order.
        columns: the column of the row in which each token counts; 0 where it is unknown.
        row: what the model gets, `[columns] global`.
        sizes: of the layers that come behind the row, such as (48, 2).
    """

    drawn_by = "course_lib.pictures.text_path"

    text: str
    tokens: tuple[str, ...]
    columns: tuple[int, ...]
    row: tuple[float, ...]
    sizes: tuple[int, ...]

    @property
    def counted(self) -> dict[int, float]:
        """The numbers of the row that are not zero, by their columns."""
        return {column: value for column, value in enumerate(self.row) if value}

    def __repr__(self) -> str:
        return f"TextPath({self.text!r})"
