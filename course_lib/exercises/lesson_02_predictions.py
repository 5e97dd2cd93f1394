"""The predictions of lesson 02."""

from __future__ import annotations

from course_lib.exercises.predict import Option, Question, prediction
from course_lib.i18n import _


@prediction("02-own-part", right=0)
def own_part() -> Question:
    """How much of a product a device has from its own blocks."""
    return Question(
        _(
            "Each device multiplies the column of A that it holds by the row of B that it holds."
            " How many of the 64 numbers of A @ B does device 0 then have?"
        ),
        [
            Option(0, _("Each of the 64 numbers is a sum of eight terms; device 0 has one term of each.")),
            Option(1, _("It makes 64 numbers, but each is one term of a sum of eight.")),
            Option(8, _("It holds a column of A and a row of B, and not a column or a row of the product.")),
            Option(
                64,
                _("It makes 64 numbers, and none is finished: each is one term of a sum of eight."),
            ),
        ],
        field=True,
        otherwise=_("Write out one number of A @ B as a sum. Which of its terms can device 0 compute?"),
    )


@prediction("02-half", right=256)
def half() -> Question:
    """What is exchanged when only one factor is split along the inner axis."""
    return Question(
        _(
            "A of 8 × 64 has its columns split over the eight devices; B of 64 × 8 is whole on every device."
            " What does TensorFlow exchange to multiply them?"
        ),
        [
            Option(
                256,
                _("Each device takes the rows of B that belong to its columns of A; the sums are 8 × 8."),
                _("partial sums of A @ B: 256 bytes"),
            ),
            Option(
                0,
                _("B is everywhere, but a device has some columns of A only: it can make a partial sum."),
                _("nothing, since B is everywhere"),
            ),
            Option(
                2048,
                _(
                    "That would do too. But a device can make its partial sum from what it has, and the sum"
                    " is smaller."
                ),
                _("the columns of A: every device receives all, 2,048 bytes"),
            ),
            Option(
                "error",
                _("Rows of B can be left out where they are not needed: that takes no exchange."),
                _("an error, since the inner axis is split in one factor only"),
            ),
        ],
    )


@prediction("02-layers", right=1)
def layers() -> Question:
    """How many exchanges two layers take whose layouts fit each other."""
    return Question(
        _(
            "On the mesh `x` 4 × `y` 2 the batch is split over `x`, the first weight is `[unsharded, y]`, the"
            " second `[y, unsharded]`: `tf.nn.relu(batch @ first) @ second`."
            " How many collectives does TensorFlow insert?"
        ),
        [
            Option(1, _("Only the second product sums over a split axis: the hidden units, over `y`.")),
            Option(0, _("The second product sums over the hidden units, and they are split over `y`.")),
            Option(
                2,
                _("The first product needs nothing: its inner axis is whole on every device."),
            ),
            Option(3, _("ReLU works on each number by itself, so it needs no data of others.")),
        ],
        field=True,
        otherwise=_("Go through the three operations: does a device have all that it needs for its part?"),
    )


@prediction("02-ring-sent", right=1400)
def ring_sent() -> Question:
    """How much a device sends in a ring."""
    return Question(
        _(
            "Eight devices all-reduce 800 numbers as a ring, in chunks of 100 numbers."
            " How many numbers does each device send in all?"
        ),
        [
            Option(
                1400, _("Seven steps of adding and seven of copying, with a chunk of 100 numbers in each.")
            ),
            Option(700, _("That is the first half. Then the finished chunks go round too.")),
            Option(800, _("That is the array once. Count the steps: in each, a chunk leaves every device.")),
            Option(5600, _("That is 7 × 800: everything to everyone. In a ring a step sends one chunk.")),
            Option(1600, _("Almost: a chunk needs only seven steps to get from one device to all others.")),
        ],
        field=True,
        otherwise=_("How many steps has each half, and how many numbers does a device send in one step?"),
    )


@prediction("02-reader", right=1)
def reader() -> Question:
    """How many exchanges are left when a reader says what it wants."""
    return Question(
        _(
            "Now `[x, unsharded] @ [unsharded, x]` is wanted as `[unsharded, x]`, in one `tf.function` with"
            " the product. How many collectives are there?"
        ),
        [
            Option(1, _("All rows of A reach every device; each then makes the columns that it shall keep.")),
            Option(0, _("A device has one eighth of the rows of A. For whole columns it needs all of them.")),
            Option(2, _("The second exchange was there to make the product whole, and nobody wants that.")),
            Option(3, _("To keep fewer columns takes no exchange, and here they are not even made whole.")),
        ],
        field=True,
        otherwise=_("What does a device lack to compute the columns that it shall keep?"),
    )


@prediction("02-names", right=12)
def names() -> Question:
    """From how many devices on the names of two messages are the same."""
    return Question(
        _(
            "A program names each message by the number of its sender and that of its receiver, one after the"
            " other with nothing between. Devices are numbered from 0. From how many devices on do two"
            " messages have the same name?"
        ),
        [
            Option(
                12,
                _("Device 11 is needed: `110` is both 1 to 10 and 11 to 0, and `111` 1 to 11 and 11 to 1."),
            ),
            Option(11, _("The numbers go to 10: `110` can only be 1 to 10 while there is no device 11.")),
            Option(10, _("All numbers have one digit then, so that every name has two and is unique.")),
            Option(
                112,
                _("`1112` is 1 to 112 and 11 to 12 and 111 to 2, but shorter names are the same earlier."),
            ),
        ],
        field=True,
        otherwise=_("Try names of three digits: which two pairs of numbers make the same one?"),
    )
