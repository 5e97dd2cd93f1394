"""Pictures of training curves: two panels, loss and accuracy, drawn with matplotlib and kept as PNG."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from course_lib.i18n import _, join_sentences, labelled, ngettext

Quantity = Literal["loss", "accuracy"]
Split = Literal["train", "test"]
QUANTITIES: tuple[Quantity, ...] = ("loss", "accuracy")

# Okabe and Ito's colours, told apart by colour-blind readers. Each comes with dashes, between which a line
# that lies exactly below is seen, and with a marker.
STYLES: tuple[tuple[str, Any, str], ...] = (
    ("#0072B2", "solid", "o"),
    ("#D55E00", (0, (6, 3)), "s"),
    ("#009E73", (0, (1.5, 2.5)), "^"),
    ("#CC79A7", (0, (9, 2, 2, 2)), "D"),
    ("#000000", (0, (3, 6)), "v"),
    ("#9A6A00", (0, (1, 5)), "P"),
)
SMOOTHING_STEPS = 20  # of which a train line shows the mean
_WIDTH_INCHES, _PANEL_HEIGHT_INCHES, _LEGEND_ROW_INCHES, _DOTS_PER_INCH = 9.0, 3.1, 0.25, 100


@dataclass(frozen=True)
class Curve:
    """A line of a picture: a value at each of some steps; "test" examples are any that were held out."""

    quantity: Quantity
    split: Split
    steps: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Picture:
    """A drawing as Jupyter shows it.

    Attributes:
        png: the picture's file.
        alt: what it shows, with its figures, for readers who cannot see it.
        text: what it is, without figures; the form in a terminal.
    """

    png: bytes
    alt: str
    text: str

    @classmethod
    def of(cls, figure: Figure, text: str, *figures: str) -> Picture:
        """Returns what is drawn, with its figures in words."""
        figure.savefig(file := io.BytesIO())
        return cls(file.getvalue(), join_sentences([text, *figures]), text)

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **_include_exclude: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"image/png": self.png, "text/plain": self.text}, {"image/png": {"alt": self.alt}}


class Panels:
    """Two panels, loss and accuracy over the steps, with a train and a test line for each run.

    One matplotlib figure is drawn again and again, since making one takes longer than drawing it.

    Args:
        names: what each run is called in the legend.
        num_steps: the last step for which there is room.
        splits: which lines the legend names; a run that is never evaluated has no test line.

    Attributes:
        lines: the lines, by run, quantity and split.
    """

    def __init__(
        self, names: Sequence[str], num_steps: int, splits: Sequence[Split] = ("train", "test")
    ) -> None:
        rows = -(-len(names) * len(splits) // 2)  # the legend has two columns
        legend_inches = _LEGEND_ROW_INCHES * (rows + 0.5)
        height_inches = _PANEL_HEIGHT_INCHES + legend_inches
        self._figure = Figure(figsize=(_WIDTH_INCHES, height_inches), dpi=_DOTS_PER_INCH)
        self._canvas: Any = FigureCanvasAgg(self._figure)
        self._figure.subplots_adjust(
            left=0.06,
            right=0.985,
            top=1 - 0.3 / height_inches,
            bottom=(legend_inches + 0.45) / height_inches,
            wspace=0.16,
        )
        self._axes = self._make_axes(num_steps)
        self.lines: dict[tuple[str, str, str], Line2D] = {}
        train_text = ngettext(
            "train (mean of the last {count} step)", "train (mean of the last {count} steps)", SMOOTHING_STEPS
        )
        for name, style in zip(names, STYLES, strict=False):
            self._add_run(name, train_text, *style)
        # matplotlib fills a legend column by column: with the runs as rows, all train lines come first.
        handles = [self.lines[name, QUANTITIES[0], split] for split in splits for name in names]
        self._figure.legend(handles=handles, loc="lower center", ncols=2, frameon=False)
        loss = self._axes["loss"]  # whose frame is rounded to pixels according to its scale
        self._changing: list[Artist] = [loss.yaxis, *loss.spines.values(), *self.lines.values()]
        for artist in self._changing:
            artist.set_animated(True)
        self._background: Any = None

    def show(self, runs: Sequence[Sequence[Curve]]) -> None:
        """Puts the numbers of each run's curves onto its lines, and fits the loss axis."""
        names = dict.fromkeys(name for name, _quantity, _split in self.lines)
        for name, curves in zip(names, runs, strict=True):
            for curve in curves:
                self.lines[name, curve.quantity, curve.split].set_data(curve.steps, curve.values)
        lines = [line for (_name, quantity, _split), line in self.lines.items() if quantity == "loss"]
        losses = np.concatenate([np.asarray(line.get_ydata(), float) for line in lines])
        largest = np.max(losses[np.isfinite(losses) & (losses > 0)], initial=0.0) or 1.0
        self._axes["loss"].set_ylim(0, float(largest) * 1.05)

    def png(self, compress_level: int = 6) -> bytes:
        """Returns the picture: the same bytes for the same numbers, whatever was shown before.

        Only what depends on the numbers is drawn anew, the lines and the scale of the loss. The rest is
        kept from the first time: this takes a quarter of the time.

        Args:
            compress_level: how hard the encoder tries, from 1 to 9.
        """
        if self._background is None:
            self._canvas.draw()  # leaves out what is marked as animated
            self._background = self._canvas.copy_from_bbox(self._figure.bbox)
        self._canvas.restore_region(self._background)
        for artist in self._changing:
            self._figure.draw_artist(artist)
        pixels = np.asarray(self._canvas.buffer_rgba())[..., :3]  # nothing shines through
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "png", compress_level=compress_level)
        return file.getvalue()

    def _make_axes(self, num_steps: int) -> dict[str, Axes]:
        titles = {"loss": _("Loss per example"), "accuracy": _("Accuracy")}
        axes: dict[str, Axes] = dict(zip(titles, self._figure.subplots(1, 2), strict=True))
        end = max(num_steps, 1) * 1.015  # room for a marker at the last step
        for quantity, title in titles.items():
            axes[quantity].set_title(title, fontsize="medium")
            axes[quantity].set(xlabel=_("step"), xlim=(0, end), ylim=(0, 1))
            axes[quantity].grid(visible=True, alpha=0.3)
        return axes

    def _add_run(self, name: str, train_text: str, colour: str, dashes: Any, marker: str) -> None:
        train, test = (
            labelled(name, content) if name else content for content in (train_text, _("held out"))
        )
        for quantity, axes in self._axes.items():
            (line,) = axes.plot([], [], linestyle=dashes, color=colour, linewidth=1.4, label=train)
            self.lines[name, quantity, "train"] = line
            (line,) = axes.plot([], [], ":", color=colour, marker=marker, markersize=7, label=test)
            self.lines[name, quantity, "test"] = line
