"""Pictures as PNG, for what differs from machine to machine: stored SVG is compared, PNG is not."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Affine2D
from PIL import Image

_SCALE = 1.5  # pixels for each unit of the SVG: letters stay sharp on screens with narrow ones
_POINTS = 72
_OPERATION = re.compile(r"(translate|scale|rotate)\(([^)]*)\)")
_SUBPATH = re.compile(r"M([-\d.]+) ([-\d.]+)h([-\d.]+)v([-\d.]+)h[-\d.]+z")
_ANCHORS = {"start": "left", "middle": "center", "end": "right"}
_BOLD, _BOLD_STROKE = 600, 0.5  # the Japanese font has no bold letters

Style = Mapping[str, str]


def to_png(svg: str) -> bytes:
    """Returns a picture of `shapes` as the file of a PNG, half as large again.

    It knows what those pictures are made of: groups that are moved, scaled or turned, rectangles, texts, and
    paths of rectangles.
    """
    root = ElementTree.fromstring(svg)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    figure = Figure(figsize=(width / _POINTS, height / _POINTS), dpi=_POINTS * _SCALE)
    canvas: Any = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    _draw(axes, root, Affine2D(), {})
    canvas.draw()
    file = io.BytesIO()
    Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3]).save(file, "png")
    return file.getvalue()


def _draw(axes: Axes, element: ElementTree.Element, outside: Affine2D, inherited: Style) -> None:
    style = {**inherited, **element.attrib}
    place = Affine2D((_transform(element.attrib.get("transform", "")) + outside).get_matrix())
    tag = element.tag.rpartition("}")[2]
    if tag in ("svg", "g"):
        for child in element:
            _draw(axes, child, place, {key: style[key] for key in ("fill",) if key in style})
    elif tag == "rect":
        x, y, width, height = (float(style.get(key, 0)) for key in ("x", "y", "width", "height"))
        axes.add_patch(Rectangle((x, y), width, height, transform=place + axes.transData, **_paint(style)))
    elif tag == "path":
        path = Path.make_compound_path(*map(_rectangle, _SUBPATH.findall(style["d"])))
        patch = PathPatch(path, transform=place + axes.transData, antialiased=False, **_paint(style))
        axes.add_patch(patch)
    elif tag == "text":
        _write(axes, element.text or "", place, style)


def _write(axes: Axes, text: str, place: Affine2D, style: Style) -> None:
    (across, along), _unused = place.get_matrix()[:2, :2].T
    colour, bold = style.get("fill", "black"), int(style.get("font-weight", 400)) >= _BOLD
    x, y = place.transform((float(style.get("x", 0)), float(style.get("y", 0))))
    axes.text(
        x,
        y,
        text,
        fontsize=float(style.get("font-size", 12)),
        family=[*mpl.rcParams["font.family"], "DejaVu Sans"],
        path_effects=[withStroke(linewidth=_BOLD_STROKE, foreground=colour)] if bold else [],
        color=colour,
        horizontalalignment=_ANCHORS[style.get("text-anchor", "start")],
        verticalalignment="baseline",
        rotation=-math.degrees(math.atan2(along, across)),
        rotation_mode="anchor",
        parse_math=False,
    )


def _transform(text: str) -> Affine2D:
    """Returns what the operations do, of which the last one written is done first."""
    place = Affine2D()
    for name, numbers in _OPERATION.findall(text):
        values = [float(number) for number in re.split(r"[ ,]+", numbers)]
        done = Affine2D()
        if name == "translate":
            done.translate(values[0], values[1])
        elif name == "scale":
            done.scale(*values)
        else:
            done.rotate_deg(values[0])
        place = Affine2D((done + place).get_matrix())
    return place


def _rectangle(numbers: tuple[str, str, str, str]) -> Path:
    x, y, width, height = map(float, numbers)
    corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
    return Path(corners, closed=True)


def _paint(style: Style) -> dict[str, Any]:
    fill, stroke = style.get("fill", "black"), style.get("stroke", "none")
    return {
        "facecolor": to_rgba(fill, float(style.get("fill-opacity", 1)) if fill != "none" else None),
        "edgecolor": to_rgba(stroke),
        "linewidth": float(style.get("stroke-width", 1)) if stroke != "none" else 0,
    }
