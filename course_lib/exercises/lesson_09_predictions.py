"""The predictions of lesson 09."""

from __future__ import annotations

from course_lib.exercises.predict import Option, Question, prediction
from course_lib.i18n import _


@prediction("09-steps", right=10)
def steps() -> Question:
    """How many steps `fit` takes on two replicas."""
    return Question(
        _("How many updates does `fit` make in one epoch?"),
        [
            Option(5, _("So it would be if each replica took a batch of 10 in every step.")),
            Option(10, _("As on one device: the two replicas share each batch.")),
            Option(20, _("So it would be if each replica counted its own, or took batches of 5 in turn.")),
        ],
        field=True,
        otherwise=_("Divide the examples by what all replicas together take in a step."),
    )


@prediction("09-count", right=4)
def count() -> Question:
    """What a plain variable counts when four replicas add 1 to it."""
    return Question(
        _("What is the value of `steps` after this one step?"),
        [
            Option(
                1,
                _("So it would be with a variable of the scope: each copy counts to 1."),
            ),
            Option(
                4,
                _("Each replica added 1 to the same variable, and no error says so."),
            ),
            Option(
                "error",
                _("An error would be welcome: the program goes on, with a wrong count."),
                label=_("No value: it is an error"),
            ),
        ],
    )


@prediction("09-uneven", right="loss")
def uneven() -> Question:
    """What agrees with one device after an epoch whose last batch has one example for two replicas."""
    return Question(
        _("What agrees with one device?"),
        _agreements(
            both=_("So it is where all parts are equal. In the last batch here one replica has no example."),
            weights=_("It is the other way round: the loss is right, and the weights are not."),
            loss=_("The training went another way, and the number that should tell says nothing of it."),
            neither=_("The weights are others, but the reported loss weights each part by its examples."),
        ),
    )


@prediction("09-central", right="weights")
def central() -> Question:
    """What agrees with one device after `fit` under CentralStorageStrategy."""
    return Question(
        _("What agrees with one device this time?"),
        _agreements(
            both=_("This was to be hoped: all parts are equal. But the reported loss is another."),
            weights=_("The training is that of one device, and the reported loss is not."),
            loss=_("It is the other way round: the weights are right, and the reported loss is not."),
            neither=_("The reported loss is another, but the weights are right."),
        ),
    )


@prediction("09-devices", right="CPU:0, CPU:0")
def devices() -> Question:
    """Where copies of a variable are whose devices do not exist."""
    return Question(
        _("What happens?"),
        [
            Option(
                "error",
                _("An error would be welcome. TensorFlow takes another device where one is missing."),
                label=_("it ends in an error"),
            ),
            Option(
                "CPU:0, CPU:0",
                _("In place of each missing device TensorFlow takes the first CPU, without a word."),
                label=_("it trains, both copies on `CPU:0`"),
            ),
            Option(
                "CPU:0, CPU:1",
                _("There is a second CPU, but the number of the missing GPU is not kept."),
                label=_("it trains, one copy on `CPU:0`, one on `CPU:1`"),
            ),
        ],
    )


def _agreements(*, both: str, weights: str, loss: str, neither: str) -> list[Option]:
    return [
        Option("both", both, label=_("the weights and the reported loss")),
        Option("weights", weights, label=_("the weights, not the reported loss")),
        Option("loss", loss, label=_("the reported loss, not the weights")),
        Option("neither", neither, label=_("neither of them")),
    ]
