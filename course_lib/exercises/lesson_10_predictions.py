"""The predictions of lesson 10."""

from __future__ import annotations

from course_lib.exercises.predict import Option, Question, prediction
from course_lib.i18n import _


@prediction("10-parts", right=(2, 2, 1, 0))
def parts() -> Question:
    """How five examples are split over four replicas."""
    return Question(
        _("How many of the five examples does each replica get?"),
        [
            Option(
                (1, 1, 1, 2), _("So it would be if parts were rounded down, and the last took what is left.")
            ),
            Option((2, 1, 1, 1), _("These parts would be as equal as they can be. TensorFlow is simpler.")),
            Option(
                (2, 2, 1, 0), _("A quarter of five is rounded up to two, and the last replica gets nothing.")
            ),
            Option((2, 2, 1, 2), _("That is seven: somebody would get an example for the second time.")),
        ],
    )


@prediction("10-own", right=1.0)
def own() -> Question:
    """Where a step leads if each of two replicas takes the mean over its own losses."""
    return Question(
        _("What is the weight after this step?"),
        [
            Option(1.0, _("The two means have the gradients 1.5 and 3.5, and these are added up: 5.")),
            Option(2.0, _("That is the right step. It would be taken if gradients were averaged.")),
            Option(1.6, _("So it would be if the copies went their own ways: this one by 3.5.")),
            Option(2.4, _("So it would be if the copies went their own ways: this one by 1.5.")),
        ],
        field=True,
        otherwise=_("Compute the gradient of each replica's mean, and add them up."),
    )


@prediction("10-empty", right="loss")
def empty() -> Question:
    """What becomes NaN if a replica takes the mean over nothing."""
    return Question(
        _("What is not a number (NaN) after this step?"),
        [
            Option(
                "none",
                _("The sum of the replicas' means has one that is a mean over nothing."),
                label=_("nothing"),
            ),
            Option(
                "loss",
                _("So nothing seems to be wrong with the model, and nobody looks for the reason."),
                label=_("the loss, and not the weight"),
            ),
            Option(
                "loss weight",
                _("It would be if the gradient of that mean were NaN, too."),
                label=_("the loss and the weight"),
            ),
            Option(
                "weight",
                _("The loss is added up from the same four means."),
                label=_("the weight, and not the loss"),
            ),
        ],
    )


@prediction("10-metric", right=1.75)
def metric() -> Question:
    """What a mean over shares shows."""
    return Question(
        _("What does the metric show?"),
        [
            Option(1.75, _("The mean of two shares. It is too small by the number of replicas.")),
            Option(
                3.5,
                _("That is the mean of the four losses, and the metric does not know of the division."),
            ),
            Option(1.25, _("That is the first replica's share; the metric is one for all replicas.")),
            Option(2.25, _("That is the second replica's share; the metric is one for all replicas.")),
            Option(0.875, _("It divides by how often it was updated: once on each replica.")),
        ],
        field=True,
        otherwise=_("It was updated twice, once on each replica."),
    )


@prediction("10-axes", right=(2, 4))
def axes() -> Question:
    """What is left of a loss on labels with three axes."""
    return Question(
        _("Which shape does the result have?"),
        [
            Option(
                (2,),
                _("That would be a loss for each example. But Keras does not know which axes are theirs."),
            ),
            Option((2, 4), _("The last axis is averaged, whatever it stands for.")),
            Option(
                (2, 4, 4),
                _("That would be a loss for each element. `none` is about examples, not about elements."),
            ),
            Option(
                (),
                _("That would be one number: `none` keeps Keras from it."),
                label=_("none: it is one number"),
            ),
        ],
    )


@prediction("10-restored", right="different")
def restored() -> Question:
    """Whether a model with dropout goes on as it would have, after TensorFlow's own checkpoint."""
    return Question(
        _("Do the two models report the same loss for this step?"),
        [
            Option(
                "equal",
                _("Weights and optimizer are equal. But the loss depends on something else, too."),
                label=_("yes, within 0.00001"),
            ),
            Option(
                "different",
                _("Their weights are the same. It is the pixels left out that differ."),
                label=_("no, they differ"),
            ),
            Option(
                "error",
                _("An error would be welcome: it would say what the checkpoint does not hold."),
                label=_("there is no loss: reading the checkpoint ends with an error"),
            ),
        ],
    )
