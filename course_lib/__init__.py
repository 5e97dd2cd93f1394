"""The library of the course: what lessons share, to draw, observe, check, train and watch.

Importing it does not import TensorFlow: each name is loaded when it is first used. The packages, from the
bottom up: `specs`, `pictures`, `code`, `data`, `devices`, `widgets`, `watch`,
`measured`, `explorers`, `exercises`. What one lesson alone needs lies in that lesson's folder.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from course_lib.specs.drawing import DrawsItself

if TYPE_CHECKING:
    from course_lib.pictures.figures import Figure


def _picture(thing: DrawsItself) -> "Figure":
    """Returns the picture of an object that draws itself."""
    from course_lib.pictures import communication, sharding  # noqa: F401 - fill `draw`
    from course_lib.pictures.figures import draw

    return draw(thing)


DrawsItself.drawn_by = _picture

# What lessons import, described on a page of the book once one does; and the error that readers may catch.
_HOMES = {
    "setup": "runtime",
    "start_tensorflow": "runtime",
    "CourseError": "errors",
    "about": "varying",
    "last_line": "messages",
    **dict.fromkeys(("collectives", "explain"), "devices.graphs"),
    **dict.fromkeys(("compare", "shard", "show", "to_numpy"), "devices.dtensor"),
    "supported": "devices.verdicts",
    "MeshSpec": "specs.mesh",
    "Plan": "specs.plan",
    "image_grid": "pictures.images",
    "code_of": "code.choices",
    "live": "watch.loop",
    **dict.fromkeys(("check", "predict", "reveal", "score", "yours_or_ours"), "exercises"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
