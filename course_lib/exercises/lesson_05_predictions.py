"""The predictions of lesson 05."""

from __future__ import annotations

from course_lib.exercises.predict import Option, Question, prediction
from course_lib.i18n import _


@prediction("05-sums-over-model", right=1)
def sums_over_model() -> Question:
    """How many all-reduces a model-parallel step takes within a model replica."""
    return Question(
        _(
            "In a step of the model-parallel MLP, forward and back: how many all-reduces run over `model`,"
            " that is within a replica?"
        ),
        [
            Option(
                0,
                _(
                    "Then each device would have what it needs. But a logit sums over all 48 hidden units,"
                    " and no device has more than 24 of them."
                ),
            ),
            Option(
                1, _("A logit sums over the hidden units, and these are split. Nothing else sums over them.")
            ),
            Option(
                2,
                _(
                    "One forward for the logits, but none on the way back: the gradient of a hidden unit sums"
                    " over the classes, which every device has. A layer in front would need one."
                ),
            ),
            Option(
                4,
                _(
                    "That would be one for the gradient of each trained variable. But these sum over the"
                    " reviews, so they run over `batch`."
                ),
            ),
        ],
    )


@prediction("05-whole-weight", right=0)
def whole_weight() -> Question:
    """What it costs to leave the second weight whole."""
    return Question(
        _(
            "`W1` is split over `model` as before, but `W2` is `[unsharded, unsharded]`. How many more bytes"
            " does a device bring into the all-reduces of this product than with `[model, unsharded]`?"
        ),
        [
            Option(
                0,
                _(
                    "Each device has all of `W2`, so it takes the rows that it needs and ignores the"
                    " others. What this costs is memory."
                ),
            ),
            Option(
                384,
                _(
                    "That is all of `W2`: so much is brought in where `W2` has to be gathered. Here each"
                    " device holds all of it already."
                ),
            ),
            Option(
                "refused",
                _(
                    "It refuses a summed axis that is split over different mesh dimensions in the two"
                    " factors. Split in one and unsharded in the other is allowed."
                ),
                label=_("No number: TensorFlow refuses such a product"),
            ),
        ],
    )


@prediction("05-sums-over-feature", right=3_072)
def sums_over_feature() -> Question:
    """What a device brings into the all-reduces over the dimension that splits the features."""
    return Question(
        _(
            "In a step of the spatial-parallel MLP, forward and back: how many bytes does a device bring into"
            " all-reduces over `feature`? A number takes 4 bytes."
        ),
        [
            Option(
                0,
                _(
                    "Then each device would have what it needs. But a hidden unit sums over all 1,200"
                    " features, and no device has more than 600 of them."
                ),
            ),
            Option(
                3_072,
                _(
                    "Only the first product sums over the features. A device has partial sums of 32 reviews"
                    " and 24 hidden units, 4 bytes each."
                ),
                label="3,072",
            ),
            Option(
                57_600,
                _(
                    "That is its part of the gradient of `W1`. It sums over the reviews, so it runs over"
                    " `batch`: devices that differ along `feature` hold other rows of `W1`."
                ),
                label="57,600",
            ),
            Option(
                60_672,
                _(
                    "That adds the gradient of `W1` to the partial sums of `x W1`. But the gradient sums over"
                    " the reviews, not over the features."
                ),
                label="60,672",
            ),
        ],
    )


@prediction("05-same-losses", right="rounding")
def same_losses() -> Question:
    """How far the losses of the three schemes are from those of one device."""
    return Question(
        _("How far do the losses of the next ten steps under the three plans lie from those on one device?"),
        [
            Option(
                "equal",
                _(
                    "They are the same sums, but split over devices they are added in another order, and"
                    " float32 rounds after each addition."
                ),
                label=_("they are equal to the bit"),
            ),
            Option(
                "rounding",
                _("The sums are the same, but added in another order, so that rounding differs."),
                label=_("they differ by less than 0.001"),
            ),
            Option(
                "different",
                _(
                    "Another mesh changes who computes what, not what is computed: the reviews, the values"
                    " and the formulas are the same."
                ),
                label=_("they differ by 0.001 or more"),
            ),
        ],
    )


@prediction("05-on-disk", right=1.0)
def on_disk() -> Question:
    """How often a checkpoint holds the variables of a model with replicas."""
    return Question(
        _(
            "The data files of the checkpoint are added up and divided by the bytes of the model's"
            " variables, each counted once. What comes out?"
        ),
        [
            Option(
                0.25,
                _("That is one device's part of `W1`. The other parts are needed too."),
                label=_("about 0.25"),
            ),
            Option(
                1.0,
                _("Each block is written once, by one of the devices that hold it: the replicas are equal."),
                label=_("about 1"),
            ),
            Option(
                2.0,
                _("The devices hold `W1` twice. But the copies are equal, so that one of them is enough."),
                label=_("about 2"),
            ),
            Option(
                8.0,
                _("Then each device would write the whole model, and none of them has it."),
                label=_("about 8"),
            ),
        ],
    )


@prediction("05-larger-batch", right=1.8, fits=lambda measured: 1.7 < measured < 1.9)
def larger_batch() -> Question:
    """How the bytes that are sent in spatial parallelism grow with the batch."""
    return Question(
        _(
            "The batch grows from 64 to 1,024 reviews. By what factor do the bytes grow that a device"
            " sends in a step of the spatial plan?"
        ),
        [
            Option(
                1.0,
                _(
                    "So it is in data parallelism: gradients are as large as the weights, whatever the batch."
                    " Here the partial sums of `x W1` are exchanged too, and they have a row for each review."
                ),
                label=_("about 1"),
            ),
            Option(
                1.8,
                _(
                    "The gradients stay as large as they were; the partial sums of `x W1`"
                    " and of the logits have 16 times the rows."
                ),
                label=_("about 2"),
            ),
            Option(
                16.0,
                _(
                    "The partial sums of `x W1` and of the logits grow by that. But most of what is sent in"
                    " a batch of 64 are gradients, and these do not grow."
                ),
                label=_("about 16"),
            ),
        ],
    )
