"""The predictions of lesson 01."""

from __future__ import annotations

import numpy as np

from course_lib.exercises.predict import Option, Question, prediction
from course_lib.i18n import _

_AGREEING = [[1, 1, 0, 0], [0, 0, 0, 0]] * 3  # 1 where two drawings have the same number


@prediction("01-neighbour", right=7)
def neighbour() -> Question:
    """The device one step along the middle of three mesh dimensions."""
    return Question(
        _(
            "The mesh `batch` 2 × `feature` 2 × `model` 2 has eight devices."
            " Which other device differs from device 5 only along `feature`?"
        ),
        [
            Option(
                7,
                _("Device 5 is at (1, 0, 1). A step along `feature` adds 2, the size of `model`."),
            ),
            Option(4, _("Devices 4 and 5 differ along `model`, the last dimension, which changes fastest.")),
            Option(
                1,
                _("A step along `batch`, the first dimension, adds 4: 1 and 5 differ along it."),
            ),
            Option(
                6, _("Device 6 stands at (1, 1, 0), device 5 at (1, 0, 1): they differ along two dimensions.")
            ),
        ],
        field=True,
        otherwise=_("Write 5 as 4·`batch` + 2·`feature` + `model`, each 0 or 1, and change `feature` alone."),
    )


@prediction("01-hybrid", right=(2, 4))
def hybrid() -> Question:
    """What one device holds of a matrix split by rows."""
    return Question(
        _(
            "The matrix of 6 rows and 4 columns gets the layout `[x, unsharded]` on the mesh `x` 3 × `y` 2."
            " How many rows and columns does one device hold?"
        ),
        [
            Option(
                (2, 4),
                _("The 6 rows are cut into 3 parts of 2 over `x`; no mesh dimension cuts the columns."),
            ),
            Option((2, 2), _("That is `[x, y]`: here no mesh dimension cuts the columns.")),
            Option((3, 4), _("3 is the number of parts into which `x` cuts the 6 rows, not their length.")),
            Option(
                (1, 4),
                _("That shares the rows among all six devices, but `y` cuts nothing: it makes copies."),
            ),
        ],
    )


@prediction("01-pack", right=(6, 4))
def packed_shape() -> Question:
    """The global shape that six components make up."""
    return Question(
        _(
            "Six components of 6 rows and 2 columns, one for each device of the mesh `x` 3 × `y` 2,"
            " are packed under the layout `[unsharded, y]`. What is the shape of the DTensor?"
        ),
        [
            Option(
                (6, 4),
                _("Two different blocks lie side by side over `y`; over `x` there are three copies of each."),
            ),
            Option((6, 2), _("That is one component. A DTensor has the shape of the whole.")),
            Option((18, 4), _("That is `[x, y]`. Here `x` cuts nothing: its three components are copies.")),
            Option((6, 12), _("That puts all six side by side, but `y` has two positions only.")),
        ],
    )


@prediction("01-packer", right=12)
def packer() -> Question:
    """How many rows are left when an axis is cut by the mesh's shape."""
    return Question(
        _(
            "Mesh `batch` 4 × `model` 2, layout `[model, unsharded]`, a matrix of 24 rows. A packer cuts the"
            " rows into `layout.shape[0]` parts and gives each device the part of its position along `model`."
            " Here `layout.shape` is `[4, 2]`."
            " How many rows does the resulting DTensor have?"
        ),
        [
            Option(
                12,
                _(
                    "Two of the 4 parts of 6 rows, one for each position along `model`;"
                    " the others reach no device."
                ),
            ),
            Option(
                24,
                _("So it should be. But `model` has two positions: two of the 4 parts reach no device."),
            ),
            Option(
                6,
                _("That is one component. The DTensor is made of two, one for each position along `model`."),
            ),
            Option(48, _("The devices along `batch` hold copies, which count once.")),
        ],
        field=True,
        otherwise=_("Into how many parts are the rows cut, and how many of these parts reach a device?"),
    )


@prediction(
    "01-numpy",
    right="UnimplementedError",
    fits=lambda measured: str(measured).startswith("UnimplementedError"),
)
def read_sharded() -> Question:
    """What reading a sharded tensor gives."""
    return Question(
        _("`rows` is split over `x`. What does `rows.numpy()` give?"),
        [
            Option(
                "UnimplementedError",
                _("The layout splits an axis, and `.numpy()` does not collect the parts."),
                _("an error"),
            ),
            Option(
                "whole",
                _("The blocks would have to be fetched from three devices; `.numpy()` leaves that to you."),
                _("the whole matrix, of the shape (6, 4)"),
            ),
            Option(
                "first",
                _("A part would then pass for the whole."),
                _("the block of device 0, of the shape (2, 4)"),
            ),
            Option(
                "all",
                _("`dtensor.unpack` gives them, as a list of six tensors of the shape (2, 4)."),
                _("all six blocks, of the shape (6, 2, 4)"),
            ),
        ],
    )


@prediction("01-random", right=_AGREEING)
def same_seed() -> Question:
    """Where the random numbers agree under two layouts."""
    return Question(
        _(
            "24 random numbers, a matrix of 6 by 4, are drawn twice with the same seed: once under the layout"
            " `[x, unsharded]`, once under `[x, y]`. At how many of the 24 places is the number the same?"
        ),
        [
            Option(
                _AGREEING,
                _(
                    "At each position of `x` the left block begins like the block of four columns:"
                    " the first two numbers fill the same places."
                    " The next ones do not, because the blocks have other shapes."
                ),
                _("at some of them"),
            ),
            Option(
                np.ones((6, 4), int).tolist(),
                _("The seed is the same, but a block of 4 columns is filled differently from one of 2."),
                _("at all of them"),
            ),
            Option(
                np.zeros((6, 4), int).tolist(),
                _(
                    "Device 0 draws the same series both times, so both its blocks begin with the same"
                    " number; and it has the first block both times."
                ),
                _("at none of them"),
            ),
        ],
    )


@prediction("01-replicas", right=[12, 12, 60, 60, 108, 108])
def unlike_replicas() -> Question:
    """The sum that each device has after unlike replicas were packed."""
    return Question(
        _(
            "Under `[unsharded, y]` devices 0, 2 and 4 are to hold one 6 × 2 block, and 1, 3 and 5 another."
            " We give `dtensor.pack` six unlike components instead: device `d` gets a block filled with the"
            " number `d`. Then `tf.reduce_sum` adds up the DTensor. What comes out?"
            " A list gives the sum on each device."
        ),
        [
            Option(
                [12, 12, 60, 60, 108, 108],
                _("`dtensor.pack` compares no values, and each group along `y` adds up its own two blocks."),
            ),
            Option(
                [12] * 6,
                _("Devices 0 and 1 have this sum. Nobody sent the others the blocks of devices 0 and 1."),
            ),
            Option(
                [180] * 6, _("That adds up all six blocks, but the sum runs over the groups along `y` only.")
            ),
            Option(
                "refused",
                _("`dtensor.pack` would have to compare the components, and it does not."),
                _("an error"),
            ),
        ],
    )
