"""What lessons use of the course's library. A program of your own needs none of it.

The beginning of a lesson:
  setup             chooses the language, the devices and the seed
  start_tensorflow  imports TensorFlow, with these devices
  data              film reviews, handwritten digits and garments (a module)

Draw and compare:
  show              a mesh, a layout, or what each device holds of a tensor
  compare           what each device should hold of an array, beside what it holds
  shard             makes a DTensor of an array and a layout
  to_numpy          makes an array of a DTensor
  code_of           the code of a choice, in TensorFlow, JAX or PyTorch
  image_grid        images under their labels
  MeshSpec          a mesh, before TensorFlow has started
  Plan              a mesh, and the axes of a model that it splits

Observe:
  collectives       what devices exchange while a function runs
  explain           the collectives that follow from layouts, beside those that ran
  supported         whether DTensor computes a function of yours as one device does
  last_line         the line of an error that says what is wrong
  about             a number whose last digits depend on the processor

Training and its results:
  live              live curves of a training run, with a Stop button
  measured          what `make results` found (a module)

Predictions and exercises:
  predict           asks what the next cell will show
  reveal            shows it, and says why
  check             says whether an answer is right, or gives a hint
  yours_or_ours     your answer if it is right, else the course's
  score             what you predicted right
  CourseError       the error for what cannot be done: what is wrong, what is allowed, what to do

`help(course_lib.setup)` tells the arguments and errors of one of them. On the site they are the page "What
lessons import".
"""

# Each name is loaded when it is first used, so that importing this does not import TensorFlow. The packages,
# from the bottom up: `specs`, `pictures`, `code`, `data`, `devices`, `widgets`, `watch`, `measured`,
# `explorers`, `exercises`. What one lesson alone needs lies in that lesson's folder.
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
    **dict.fromkeys(("setup", "start_tensorflow"), "runtime"),
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
    # `help` asks for the value of each, and must not start TensorFlow before `setup` has chosen the devices.
    from course_lib.runtime import tensorflow_has_started

    needs_tensorflow = {name for name, home in _HOMES.items() if home.startswith("devices.")}
    names = {*globals(), *_HOMES}
    return sorted(names if tensorflow_has_started() else names - needs_tensorflow)
