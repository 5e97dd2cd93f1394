"""The predictions of lesson 11."""

from __future__ import annotations

from course_lib.exercises.predict import Option, Question, prediction
from course_lib.i18n import _


@prediction("11-alone", right="1")
def alone() -> Question:
    """What a worker does that was not told its place."""
    return Question(
        _("What does the strategy do?"),
        [
            Option(
                "error",
                _("That would be kind. But a program may be meant for one machine, and then all is well."),
                label=_("It ends with an error: it does not know its cluster."),
            ),
            Option(
                "waits",
                _("For whom? It knows of nobody."),
                label=_("It waits for the others."),
            ),
            Option(
                "1",
                _("It trains alone, and so does each of its colleagues: several models, and no error."),
                label=_("It trains with one replica."),
            ),
        ],
    )


@prediction("11-equal", right=0)
def equal() -> Question:
    """In how many steps two workers tell different losses."""
    return Question(
        _("In how many of the six steps do the two tell different losses, compared to nine decimals?"),
        [
            Option(
                0, _("What they tell is the loss of the global batch, which both get from the all-reduce.")
            ),
            Option(
                5,
                _("They begin alike, and each step changes both in the same way: nothing parts them later."),
            ),
            Option(6, _("So it would be if each told the loss of its own half of the batch.")),
        ],
        field=True,
        otherwise=_("Think of what an all-reduce gives to each that takes part."),
    )


@prediction("11-file", right=(4, 5, 6, 7, 12, 13, 14, 15))
def file() -> Question:
    """Which examples the second of two workers gets, divided by file."""
    return Question(
        _("Divided by `FILE`: which examples does worker 1 get?"),
        [
            Option(
                (2, 3, 6, 7, 10, 11, 14, 15),
                _("That is the second half of every batch: so it is divided by `DATA`."),
            ),
            Option(
                (4, 5, 6, 7, 12, 13, 14, 15),
                _("Files are dealt like cards: of four files it gets the second and the fourth."),
            ),
            Option(
                (8, 9, 10, 11, 12, 13, 14, 15),
                _("These are two whole files. But files are given out in turn, not in a row."),
            ),
            Option(
                (1, 3, 5, 7, 9, 11, 13, 15),
                _("For that, every worker would have to read all files."),
            ),
        ],
    )


@prediction("11-kill", right="error")
def kill() -> Question:
    """What the survivor of two workers does."""
    return Question(
        _("What does worker 0 do?"),
        [
            Option(
                "goes on",
                _("Then half of each batch would be missing, and it would train another model."),
                label=_("It goes on alone, with its half of each batch."),
            ),
            Option(
                "waits",
                _(
                    "The all-reduce fails, and so does every later one of this process:"
                    " a new worker 1 comes in vain."
                ),
                label=_("It waits until worker 1 is started again."),
            ),
            Option(
                "error",
                _("The all-reduce fails, and with it every later one of this process."),
                label=_("It ends with an error."),
            ),
        ],
    )


@prediction("11-resume", right=0)
def resume() -> Question:
    """In how many steps two workers that were started again differ from those that nothing disturbed."""
    return Question(
        _("In how many of the steps 4, 5 and 6 is the loss another one?"),
        [
            Option(0, _("Whatever a step depends on came back, so that it gives the same again.")),
            Option(1, _("Step 4 was done twice, but both times from the same values, with the same images.")),
            Option(2, _("Steps 5 and 6 follow from step 4, and that one was done again as before.")),
            Option(3, _("So it would be if the optimizer, or the order of the images, began anew.")),
        ],
        field=True,
        otherwise=_("There are three steps."),
    )


@prediction("11-clients", right="batch")
def clients() -> Question:
    """Which mesh dimension crosses from process to process."""
    return Question(
        _("Along which mesh dimensions do groups hold devices of both processes?"),
        [
            Option(
                "batch",
                _("Neighbours along `model` are numbered one after another, and stay in one process."),
                label=_("`batch` only"),
            ),
            Option(
                "model",
                _("Work out the first groups: along `model` it is devices 0 and 1."),
                label=_("`model` only"),
            ),
            Option(
                "batch model",
                _("The groups along `batch` do. Those along `model` are pairs of neighbours."),
                label=_("both"),
            ),
            Option(
                "",
                _("Then the two processes would never exchange a gradient."),
                label=_("none"),
            ),
        ],
    )


@prediction("11-worker", right="all done")
def worker() -> Question:
    """What becomes of the steps of an epoch in which one of two workers is killed."""
    return Question(
        _("Worker 1 is killed, with steps still to do. What does the training do until it is back?"),
        [
            Option(
                "error",
                _("So it was with the all-reduce. Here no worker waits for another."),
                label=_("It ends with an error."),
            ),
            Option(
                "waits",
                _("No step belongs to a worker: another one can do it."),
                label=_("It waits for worker 1, with the steps that this one was given."),
            ),
            Option(
                "one lost",
                _("The coordinator has no result of that step, and so it knows that it was not done."),
                label=_("It goes on with worker 0, and the step that worker 1 had is missing."),
            ),
            Option(
                "all done",
                _("A step without a result is given to another worker: each epoch has all five."),
                label=_("It goes on with worker 0, and each epoch has all its steps."),
            ),
        ],
    )


@prediction("11-server", right="error")
def server() -> Question:
    """What a coordinator does without one of two servers."""
    return Question(
        _("Then server 1 is killed. What does the training do?"),
        [
            Option(
                "error",
                _("Its variables were nowhere else, and no gradient can be computed without them."),
                label=_("It ends with an error."),
            ),
            Option(
                "waits",
                _("A new server would have the old one's name, and none of its values."),
                label=_("It waits until the server is started again."),
            ),
            Option(
                "goes on",
                _("A worker is replaced by any other. A server holds what no other has."),
                label=_("It goes on with server 0."),
            ),
        ],
    )
