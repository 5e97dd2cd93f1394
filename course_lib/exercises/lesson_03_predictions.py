"""The predictions of lesson 03."""

from __future__ import annotations

from course_lib.exercises.predict import Option, Question, prediction
from course_lib.i18n import _


@prediction("03-world", right=64)
def world() -> Question:
    """How many rows a device computes when nothing is split."""
    return Question(
        _(
            "Eight devices form the mesh `world`, and every layout is unsharded."
            " A batch of 64 reviews goes in. How many rows of logits does each device hold afterwards?"
        ),
        [
            Option(
                64,
                _("Unsharded means replicated: every device has all rows, and computes the logits of all."),
            ),
            Option(
                8,
                _(
                    "That would take a layout that splits the batch axis. Eight devices alone split nothing:"
                    " the layout here leaves every axis whole, so each device has all 64 rows."
                ),
            ),
            Option(
                512,
                _(
                    "So many rows are held by all devices together, each of the 64 eight times over."
                    " One device holds 64."
                ),
            ),
            Option(
                1,
                _("A mesh dimension splits only what a layout gives to it, and here it is given nothing."),
            ),
        ],
        field=True,
        otherwise=_(
            "Ask of the layout [unsharded, unsharded] what a device holds: the whole tensor, 64 rows."
        ),
    )


@prediction("03-copies", right=0.0)
def copies() -> Question:
    """How far the copies of a weight are apart after 20 steps."""
    return Question(
        _(
            "In each of the 20 steps a device got 8 reviews that no other device got."
            " How far apart are the eight copies of the hidden weight now, at most?"
        ),
        [
            Option(
                0.0,
                _(
                    "They began equal and were all changed by the same numbers, so they are equal to the last"
                    " bit."
                ),
                label=_("0: equal to the last bit"),
            ),
            Option(
                1e-7,
                _(
                    "Rounding would separate them if each device added the eight parts in its own order. All"
                    " of them get the same total, and subtract the same numbers."
                ),
                label=_("about 1e-7: equal up to rounding"),
            ),
            Option(
                0.01,
                _(
                    "They would drift apart if each device applied the gradient of its own reviews."
                    " The next section shows what it applies instead."
                ),
                label=_("about 0.01: each learnt from other reviews"),
            ),
            Option(
                1e-4,
                _(
                    "Differences that grow from step to step would take updates that differ. All devices"
                    " subtract the same total from the same values."
                ),
                label=_("about 1e-4: too little to show in the losses above"),
            ),
        ],
    )


@prediction("03-coupled", right=0.77, fits=lambda measured: 0.1 < measured < 2)
def coupled() -> Question:
    """Whether gradients of parts add up with batch normalisation."""
    return Question(
        _(
            "Now with batch normalisation: the gradients of the eight parts are again computed one by one on"
            " one device, and added. By how much does the sum differ from the gradient that DTensor gives for"
            " the batch on eight devices, compared with the length of that gradient?"
        ),
        [
            Option(
                0.0,
                _(
                    "So it was without normalisation, where the loss is a sum over rows that know nothing of"
                    " each other. The moments of a batch depend on all its rows."
                ),
                label=_("by less than a thousandth of its length"),
            ),
            Option(
                0.01,
                _(
                    "That would take moments of 8 rows that are nearly those of 64. But a mean of 8 rows is"
                    " off that of all 64 by about a third of the deviation."
                ),
                label=_("by a thousandth to a tenth of its length"),
            ),
            Option(
                0.77,
                _(
                    "So large because each part is normalised for itself: a mean of 8 rows is off that of all"
                    " 64 by about a third of the deviation, in every hidden unit, and so all values change."
                ),
                label=_("by a tenth to twice its length"),
            ),
            Option(
                9.0,
                _(
                    "So far it would be off if each part divided its loss by its own 8 rows and the whole"
                    " batch by 64: by about nine times its length. Here both sum the losses."
                ),
                label=_("by more than twice its length"),
            ),
        ],
    )


_MEANS = {"all 64": 0.595, "20 by 64": 0.148, "20 by 20": 0.474, "right": 0.428}


def _none_is_near(means: dict[str, float]) -> bool:
    return all(abs(mean / means["right"] - 1) > 0.01 for name, mean in means.items() if name != "right")


@prediction("03-padding", right=_MEANS, fits=_none_is_near)
def padding() -> Question:
    """Which mean over a padded batch equals the mean over its reviews."""
    return Question(
        _(
            "The 20 reviews are padded to 64 rows, and `eight_devices` gives 64 losses."
            " Which mean equals, to 1 %, the mean loss of a batch of just these 20 on one device?"
        ),
        [
            Option(
                "all 64",
                _("This counts 44 rows that are no reviews."),
                label=_("the mean of all 64 losses"),
            ),
            Option(
                "20 by 64",
                _("The padding has changed the 20 losses, and on top of that their sum is divided by 64."),
                label=_("the sum of the 20 losses divided by 64"),
            ),
            Option(
                "20 by 20",
                _(
                    "Each review counts once, as it should. But its loss is another one: the padding took"
                    " part in the mean and variance by which every row is normalised."
                ),
                label=_("the sum of the 20 losses divided by 20"),
            ),
            Option(
                _MEANS,
                _("Even the 20 losses themselves have changed: normalisation saw 44 rows of zeros."),
                label=_("none of them"),
            ),
        ],
    )


@prediction("03-alone", right=1)
def alone() -> Question:
    """How many answers three reviews get, each in a batch of its own."""
    return Question(
        _("Three different reviews, each alone in its batch. How many different pairs of logits come back?"),
        [
            Option(
                3,
                _(
                    "So it should be. But with one row the mean of a column is that row's value,"
                    " and the difference of the two is zero whatever the review says."
                ),
            ),
            Option(
                2,
                _("There are two classes, but logits are not rounded to them. All three pairs are equal."),
            ),
            Option(1, _("Every review becomes zeros, and only the bias of the last layer is left.")),
            Option(
                0,
                _(
                    "The variance of one value is 0, and dividing by its root would give no numbers;"
                    " a small constant is added to it to prevent that."
                ),
                label=_("0: the logits are not numbers"),
            ),
        ],
    )
