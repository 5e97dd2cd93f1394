"""How specs show themselves in a notebook. What draws them stands above them, and is handed to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from course_lib.errors import CourseError

if TYPE_CHECKING:
    from course_lib.pictures.figures import Figure


class DrawsItself:
    """An object that a notebook shows as its picture; `repr` stays one short line, for lists and errors.

    Attributes:
        drawn_by: returns the picture of any such object; `course_lib`, above specs and pictures, sets it.
    """

    drawn_by: ClassVar[Callable[[DrawsItself], Figure]]

    def picture(self) -> Figure:
        """Returns the picture of this object.

        Raises:
            CourseError: it cannot be drawn.
        """
        return DrawsItself.drawn_by(self)

    def _repr_mimebundle_(self, **_options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            picture = self.picture()
        except CourseError as error:
            return {"text/plain": f"{self!r}\n{error}"}, {}
        data = {"image/svg+xml": picture.svg, "text/plain": picture.text}
        return data, {"image/svg+xml": {"alt": picture.text}}
