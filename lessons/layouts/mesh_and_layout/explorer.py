"""The mesh and layout explorer: choose a mesh, a tensor and a layout, and see which device holds what."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy.typing as npt

from course_lib.explorers.experiment import Experiment
from course_lib.i18n import _, later
from course_lib.pictures.devices import mesh_parts, observed_cards, predicted_cards
from course_lib.pictures.shapes import Node, node
from course_lib.pictures.tensors import tensor_drawing
from course_lib.pictures.text import axis_notes, block_lines, holding_lines, marked
from course_lib.specs.components import Comparison
from course_lib.specs.mesh import UNSHARDED
from course_lib.specs.sharding import Sharding, numbered_tensor
from course_lib.widgets import pieces
from course_lib.widgets.controls import State
from course_lib.widgets.listings import code_listings
from lessons.layouts import mesh_layout_state as states

Observe = Callable[[Sharding], Sequence[npt.ArrayLike]]
MOST_REAL_ELEMENTS = 2**20
_FIRST = {
    "num_dims": 2,
    "mesh": [["x", 2], ["y", 4]],
    "num_axes": 2,
    "shape": [8, 6],
    "layout": ["x", UNSHARDED],
}


def real_components(sharding: Sharding) -> Sequence[npt.ArrayLike]:
    """Makes the real DTensor of a choice, and returns what each device holds of it, `[...] local` each."""
    from course_lib.devices.dtensor import tf, to_layout, unpack

    numbers = numbered_tensor(sharding.global_shape)
    return unpack(tf.experimental.dtensor.copy_to_mesh(numbers, to_layout(sharding.layout)))


class MeshLayoutExplorer(Experiment):
    """Lets the reader choose a mesh, a tensor and a layout, and shows which device holds what.

    The property `sharding` follows the reader's clicks.

    Args:
        observe: what the button runs.
    """

    name = "mesh_layout"
    title = later("Mesh and layout explorer")
    example = "MeshLayoutExplorer(observe)"
    button = later("Make the real DTensor and compare")
    waiting = later("Making the real DTensor.")

    controls = staticmethod(states.notebook_groups)
    page_controls = staticmethod(states.page_groups)
    settled = staticmethod(states.whole_state)
    page_settled = staticmethod(states.page_state)

    def __init__(self, observe: Observe | None = real_components) -> None:
        super().__init__(observe, _FIRST)

    @property
    def sharding(self) -> Sharding:
        """The sharding that the reader chose.

        Raises:
            CourseError: it is illegal.
        """
        return states.sharding_of(self.state)

    def why_not(self, state: State) -> str:
        """Returns why the real DTensor of a choice is not made, or "" where it can be tried."""
        too_large = _(
            "No real DTensor: the tensor is too large. The most is {most} in all.",
            most=f"{MOST_REAL_ELEMENTS:,}",
        )
        small = math.prod(states.sharding_of(state).global_shape) <= MOST_REAL_ELEMENTS
        return super().why_not(state) or ("" if small else too_large)

    def result(self, state: State) -> Comparison:
        """Returns the components of the real DTensor beside the prediction."""
        sharding = states.sharding_of(state)
        real = self._observe(sharding) if self._observe else []
        return Comparison(sharding, numbered_tensor(sharding.global_shape), real)

    def verdict(self, result: Comparison) -> str:
        """Returns whether the real components are the predicted ones."""
        return marked(result.sentence, agrees=result.agrees)

    def above(self, state: State, result: Comparison | None) -> Sequence[Node]:
        """Returns the facts, the tensor, the prediction and reality."""
        sharding = states.sharding_of(state)
        facts = {
            _("Local shape"): sharding.local_shape,
            _("Bytes on each device"): f"{sharding.bytes_per_device():,}",
            _("Copies of each element"): sharding.copies,
        }
        says = node("p", class_="says", aria_hidden="true")  # of the chosen card, whose button speaks it
        return [pieces.facts(facts), pieces.panels(_panels(sharding, result)), says]

    def below(self, state: State) -> Sequence[Node]:
        """Returns the code of the choice."""
        return [code_listings(states.sharding_of(state))]


def _panels(sharding: Sharding, comparison: Comparison | None) -> list[Node]:
    tensor = pieces.image(tensor_drawing(sharding, outlines=True), "\n".join(block_lines(sharding)))
    cards = mesh_parts(sharding.mesh, predicted_cards(sharding, pressable=True))
    panels = [
        pieces.panel(_("Tensor"), tensor, axis_notes(sharding)),
        pieces.panel(_("Prediction"), pieces.usable(cards, _("Prediction"))),
    ]
    if comparison is not None:
        real = mesh_parts(sharding.mesh, observed_cards(comparison))
        told = "\n".join(holding_lines(sharding, comparison.holdings, comparison.components))
        panels.append(pieces.panel(_("Reality"), pieces.images(real, told)))
    return panels
