"""The mesh and layout explorer: a widget in a notebook, and the same on a static page."""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import numpy.typing as npt
import traitlets

from course_lib.errors import CourseError
from course_lib.explorers.choices import ELEMENT_BYTES, GLOBAL_SHAPES, MESHES, explorer_table
from course_lib.i18n import _
from course_lib.pictures.figures import Figure, comparison_figure, layout_figure
from course_lib.pictures.text import MOST_VALUES, form_value
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.sharding import Array, numbered_tensor, verdict

__all__ = ["MeshLayoutExplorer", "numbered_tensor"]

Observe = Callable[[LayoutSpec, tuple[int, ...]], Sequence[npt.ArrayLike]]


class MeshLayoutExplorer(anywidget.AnyWidget):
    """Lets the reader choose a mesh, a tensor and a layout, and shows which device holds what.

    The properties `mesh`, `global_shape`, `sharding_specs` and `layout` follow what the reader clicks.

    Args:
        observe: makes the real DTensor for the button. It gets a layout and a global shape, distributes
            `numbered_tensor(global_shape)`, and returns the real component of each device in their order.
            Without it the button is disabled.
        num_devices: 6 or 8, if no mesh is given.
        mesh: the mesh shown first, one of `course_lib.explorers.choices.MESHES`.
        global_shape: the tensor shown first, one of `course_lib.explorers.choices.GLOBAL_SHAPES`.
        sharding_specs: the layout shown first; it may be one that is illegal. By default axis 0
            is sharded over the first mesh dimension.

    Raises:
        CourseError: the explorer does not offer the choice.
    """

    _esm = Path(__file__).parents[1] / "widgets" / "static" / "mesh_layout_explorer.js"
    _ipython_display_ = None  # ipywidgets 7 would show itself with it, and leave the bundle below out

    table = traitlets.Dict().tag(sync=True)
    choice = traitlets.Dict().tag(sync=True)
    observed = traitlets.Dict().tag(sync=True)
    can_observe = traitlets.Bool().tag(sync=True)

    def __init__(
        self,
        observe: Observe | None = None,
        *,
        num_devices: int = 8,
        mesh: MeshSpec | None = None,
        global_shape: Sequence[int] = (8, 6),
        sharding_specs: Sequence[str] | None = None,
    ) -> None:
        table = explorer_table()
        choice = _first_choice(table, num_devices, mesh, tuple(global_shape), sharding_specs)
        super().__init__(table=table, choice=choice, can_observe=observe is not None)
        self._observe = observe
        self.on_msg(self._answer)

    @property
    def mesh(self) -> MeshSpec:
        """The mesh that the reader chose."""
        at: int = self.choice["mesh"]
        return MESHES[at]

    @property
    def global_shape(self) -> tuple[int, ...]:
        """The shape of the tensor that the reader chose."""
        return GLOBAL_SHAPES[self.choice["tensor"]]

    @property
    def sharding_specs(self) -> tuple[str, ...]:
        """What the reader chose for each axis, legal or not."""
        return tuple(self.choice["specs"])

    @property
    def layout(self) -> LayoutSpec:
        """The layout that the reader chose.

        Raises:
            CourseError: one mesh dimension splits two axes.
        """
        return LayoutSpec(self.sharding_specs, self.mesh)

    def figure(self) -> Figure:
        """Returns the picture of the choice.

        Raises:
            CourseError: the choice is illegal.
        """
        return layout_figure(self.layout, self.global_shape, element_bytes=ELEMENT_BYTES)

    def observe_choice(self) -> Figure:
        """Makes the real DTensor of the choice, shows it in the explorer, and returns the comparison.

        Raises:
            CourseError: the choice is illegal, or the explorer has no `observe`.
        """
        if self._observe is None:
            raise CourseError(
                _("This explorer cannot make a real DTensor."),
                allowed=_("an explorer that was given a function observe"),
                cure=_("Make it with MeshLayoutExplorer(observe)."),
            )
        whole = numbered_tensor(self.global_shape)
        self.layout.local_shape(self.global_shape)
        components = [np.asarray(part) for part in self._observe(self.layout, self.global_shape)]
        figure = comparison_figure(self.layout, whole, components)
        result = verdict(self.layout, whole, components)
        self.observed = {
            "key": self._key(),
            "mark": "✓" if result.agrees else "✗",
            "verdict": result.text,
            "holdings": list(result.holdings),
            "values": [_cells(component) for component in components],
        }
        return figure

    def to_html(self) -> str:
        """Returns the explorer for a page without a kernel.

        Where the page loads the module `mesh_layout_explorer.js`, the element comes to life; elsewhere the
        picture inside it stays.
        """
        state = {"table": self.table, "choice": self.choice, "observed": self.observed}
        text = json.dumps(state, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        return (
            f'<mesh-layout-explorer><script type="application/json">{text}</script>'
            f"{self._still()}</mesh-layout-explorer>"
        )

    def _still(self) -> str:
        try:
            return self.figure().svg
        except CourseError as error:
            return f"<pre>{html.escape(str(error))}</pre>"

    def __repr__(self) -> str:
        try:
            return self.figure().text
        except CourseError as error:
            return str(error)

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle = super()._repr_mimebundle_(**options) or ({}, {})
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        data = {**data, "text/plain": repr(self)}
        if "google.colab" not in sys.modules:  # it might prefer the element, which needs the book's module
            data["text/html"] = self.to_html()
        return data, metadata

    def _key(self) -> str:
        """Names the choice as the explorer's JavaScript does, so that it knows what was observed."""
        return "/".join([str(self.choice["mesh"]), str(self.choice["tensor"]), *self.sharding_specs])

    def _answer(self, _widget: Any, message: Any, _buffers: Any) -> None:
        if message.get("kind") != "observe":
            return
        try:
            self.observe_choice()
        except Exception as error:  # the reader sees it in the explorer: here nobody would
            self.observed = {"key": self._key(), "mark": "✗", "verdict": f"{type(error).__name__}: {error}"}


def _cells(component: Array) -> list[list[str]] | None:
    """Returns the values as rows of texts, or None if they are too many to show."""
    if component.size > MOST_VALUES:
        return None
    last = component.shape[-1] if component.ndim else 1
    return [[form_value(value) for value in row] for row in component.reshape(-1, last).tolist()]


def _first_choice(
    table: dict[str, Any],
    num_devices: int,
    mesh: MeshSpec | None,
    global_shape: tuple[int, ...],
    sharding_specs: Sequence[str] | None,
) -> dict[str, Any]:
    meshes = {str(offered): at for at, offered in enumerate(MESHES)}
    tensors = {shape: at for at, shape in enumerate(GLOBAL_SHAPES)}
    sizes = {offered.size: offered for offered in reversed(MESHES) if len(offered.dims) == 2}  # noqa: PLR2004
    if mesh is None:
        _require_offered(num_devices, sizes, _("{choice} devices are not offered.", choice=num_devices))
        mesh = sizes[num_devices]
    _require_offered(str(mesh), meshes, _("The mesh {choice} is not offered.", choice=mesh))
    _require_offered(global_shape, tensors, _("A tensor {choice} is not offered.", choice=global_shape))
    if sharding_specs is None:
        sharding_specs = [mesh.names[0], *[UNSHARDED] * (len(global_shape) - 1)]
    at_mesh, at_tensor = meshes[str(mesh)], tensors[global_shape]
    layouts = {tuple(name.split(",")): name for name in table["choices"][at_mesh][at_tensor]}
    given = tuple(sharding_specs)
    _require_offered(given, layouts, _("The layout {choice} is not offered.", choice=list(given)))
    return {"mesh": at_mesh, "tensor": at_tensor, "specs": list(given), "device": 0}


def _require_offered(given: object, offered: Any, problem: str) -> None:
    if given not in offered:
        raise CourseError(
            problem,
            allowed=", ".join(map(str, sorted(offered, key=str))),
            cure=_("Choose one of these; layout_figure draws any other."),
        )
