"""The block explorer: choose how a transformer block is split, and step through what its step exchanges."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.explorers.stepping import SteppingExplorer
from course_lib.i18n import _, later
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.plan import BATCH, Plan
from course_lib.specs.step import Event
from course_lib.widgets.controls import Choice, Group, State
from lessons.scale.networks import network_step, transformer

NETWORK = transformer(sequence=10, features=32, heads=4, vocabulary=12, hidden=128)
MESHES = {f"{data}x{8 // data}": MeshSpec([(BATCH, data), ("model", 8 // data)]) for data in (8, 4, 2)}
SPLITS = {BATCH: BATCH, "heads": "model", "hidden": "model"}


class BlockExplorer(SteppingExplorer):
    """Lets the reader step through what a transformer block exchanges, data and tensor parallel."""

    name = "block"
    title = later("The exchanges of a transformer block")

    def __init__(self) -> None:
        super().__init__({"mesh": "4x2", "event": 0})

    def controls(self, state: State) -> Sequence[Group]:
        """Returns the meshes and the two moves."""
        meshes = [(name, str(mesh)) for name, mesh in MESHES.items()]
        return [Group(_("Mesh"), [Choice(("mesh",), meshes)]), self.moves(state)]

    def mesh(self, state: State) -> MeshSpec:
        """Returns the chosen mesh."""
        return MESHES[state["mesh"]]

    def events(self, state: State) -> list[Event]:
        """Returns what the devices exchange in a step on 32 examples."""
        return network_step(NETWORK, Plan(state["mesh"], self.mesh(state), SPLITS), batch_size=32)
