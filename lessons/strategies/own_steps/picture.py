"""The pictures of this lesson: what `fit` makes of a loss, who draws which noise, and where one clips."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Plot
from matplotlib.patches import Circle

from course_lib.i18n import _
from course_lib.pictures.curves import STYLES, Picture
from course_lib.pictures.figures import Figure
from lessons.strategies.boxes import Box, Line, Scheme, scheme_figure

Vector = tuple[float, float]
PART_LOSSES = (2.25, 2.40, 2.44, 2.45)  # of the four parts of the lesson's 64 images; a test holds them


def report_picture() -> Figure:
    """Returns what the four replicas of each step return, and what becomes of it."""

    def replicas(losses: Sequence[float], gradient: str, data: int) -> list[Box]:
        names = [_("replica {number}", number=number) for number in range(len(losses))]
        told = [_("returns {loss}", loss=f"{loss:.3g}") for loss in losses]
        lines = [(Line(each, data), Line(gradient, data + 1, waits=True)) for each in told]
        return [Box(name, its) for name, its in zip(names, lines, strict=True)]

    scheme: Scheme = [
        _("OwnMean: the mean over a part"),
        replicas(PART_LOSSES, _("a gradient"), 0),
        _("fit reports the mean of the four, 2.38."),
        _("The optimizer adds up: the gradient of one device, times four."),
        _("ComputeLoss: a share, a quarter of that"),
        replicas([loss / 4 for loss in PART_LOSSES], _("a quarter of it"), 2),
        _("fit reports the mean of the four, 0.596."),
        _("The optimizer adds up: the gradient of one device."),
    ]
    return scheme_figure(_("What becomes of the losses, and of their gradients"), scheme)


def noise_picture() -> Figure:
    """Returns which noise a layer gives each example on one device, and on two replicas."""
    scheme: Scheme = [
        _("A layer, on one device"),
        [_noisy(_("one device"), 1, "ABCD")],
        _("A layer, on two replicas"),
        [_noisy(_("replica 0"), 1, "AB"), _noisy(_("replica 1"), 3, "AB")],
    ]
    return scheme_figure(_("Which noise does an example get?"), scheme)


def noise_in_data_picture() -> Figure:
    """Returns which noise each example brings on two replicas."""
    boxes = [_noisy(_("replica 0"), 1, "AB"), _noisy(_("replica 1"), 3, "CD")]
    return scheme_figure(_("Noise in the data"), [_("Noise in the data, on two replicas"), boxes])


def _noisy(name: str, first: int, letters: str) -> Box:
    numbered = enumerate(letters, first)
    drawn = [
        Line(_("example {number}: noise {letter}", number=number, letter=letter), "ABCD".index(letter))
        for number, letter in numbered
    ]
    return Box(name, tuple(drawn))


def skip_picture() -> Figure:
    """Returns whom the optimizer asks, and what it then does."""
    asked = Box(_("replica 0"), (Line(_("gradient 1"), 0, waits=True), Line(_("asked: is it finite? yes"))))
    other = Box(_("replica 1"), (Line(_("gradient ∞"), 5, waits=True), Line(_("not asked"))))
    after = [Box(_("replica {number}", number=number), (Line(_("weight −∞"), 5),)) for number in range(2)]
    told = _("So the step is taken. The optimizer adds up: 1 + ∞ = ∞.")
    return scheme_figure(_("Who skips the step?"), [[asked, other], told, after])


def clip_picture() -> Picture:
    """Returns the shares (3, 0) and (0, 4): clipped and then added up, and added up and then clipped."""
    plot = Plot(figsize=(8, 5.7), layout="constrained")
    before, after = plot.subplots(1, 2, sharex=True, sharey=True)
    _arrows(before, _("clipped, then added up: norm 1.41"), (_("clipped"), [(1, 0), (0, 1)]), (1, 1))
    _arrows(after, _("added up, then clipped: norm 1"), (_("their sum"), [(3, 4)]), (0.6, 0.8))
    text = _(
        "Picture: the shares (3, 0) and (0, 4). Clipped to a norm of 1 each, they add up to (1, 1), outside"
        " of the circle of radius 1. Their sum (3, 4), clipped, is (0.6, 0.8), on the circle."
    )
    return Picture.of(plot, text)


def _arrows(axes: Axes, title: str, between: tuple[str, list[Vector]], end: Vector) -> None:
    """Draws the two shares, what is made of them first, and the step."""
    axes.add_patch(Circle((0, 0), 1, fill=False, linestyle=(0, (2, 2)), color="#4D5661"))
    kinds = (
        ([(3, 0), (0, 4)], "#AEB6C0", _("shares")),
        (between[1], STYLES[0][0], between[0]),
        ([end], STYLES[1][0], _("the step")),
    )
    for vectors, colour, label in kinds:
        for x, y in vectors:
            axes.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2.5})
        axes.plot([], [], color=colour, label=label, linewidth=2.5)
    if len(between[1]) > 1:  # the parallelogram of their sum
        for x, y in between[1]:
            axes.plot([x, end[0]], [y, end[1]], color=STYLES[0][0], linestyle=(0, (3, 3)), linewidth=1)
    axes.set(title=title, xlim=(-1.2, 4.2), ylim=(-1.2, 5.7), aspect="equal")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(loc="upper right", frameon=False)
