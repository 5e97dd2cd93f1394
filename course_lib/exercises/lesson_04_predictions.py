"""The predictions of lesson 04."""

from __future__ import annotations

from course_lib.exercises.predict import Option, Question, prediction
from course_lib.i18n import _


@prediction("04-best-of-hundred", right=0.62)
def best_of_hundred() -> Question:
    """What the best of a hundred guessing models shows on the reviews by which it was chosen."""
    return Question(
        _(
            "Each of the hundred models is right for half of all reviews in the long run. Which"
            " accuracy does the best one show on the 100 reviews?"
        ),
        [
            Option(
                0.5,
                _(
                    "That is the mean of the hundred, and what to expect of the best one on other reviews."
                    " But the best was chosen for its luck on these."
                ),
            ),
            Option(
                0.53, _("One model alone is off by about 0.05. The luckiest of a hundred is off by far more.")
            ),
            Option(
                0.62,
                _(
                    "One model's accuracy is off by about 0.05, and the luckiest of a hundred by"
                    " more than twice"
                    " that. The winner has learnt nothing."
                ),
            ),
            Option(
                0.8,
                _("That would be six times what chance is usually off by: a hundred tries do not reach it."),
            ),
            Option(1.0, _("A hundred right guesses in a row: a hundred tries are far too few for that.")),
        ],
    )


@prediction("04-close", right=100)
def close() -> Question:
    """The step at which a run stands that was closed after 100 records."""
    return Question(
        _("`close` left a checkpoint. Which step does its model belong to?"),
        [
            Option(
                96,
                _(
                    "Three calls of 32 steps. But the run does not throw away the four steps whose records"
                    " you took: it repeats them from the state before the fourth call."
                ),
            ),
            Option(
                100,
                _(
                    "The run keeps the state before each call. `close` goes back to step 96 and repeats the"
                    " four steps whose records you took."
                ),
            ),
            Option(
                110,
                _(
                    "That is how far the fourth call had gone: to the end of the epoch. A"
                    " checkpoint there would"
                    " skip ten steps that nobody has a record of, so `close` takes them back."
                ),
            ),
            Option(
                128,
                _(
                    "Four calls of 32 steps. But an epoch has 110, so the fourth call ended"
                    " there; and `close`"
                    " takes back the steps that nobody has a record of."
                ),
            ),
        ],
        field=True,
        otherwise=_("You took 100 records, one a step. What is there to do with steps beyond them?"),
    )


@prediction("04-resume", right=0.0)
def resume() -> Question:
    """How far the weights of a resumed run are from those of an undisturbed one."""
    return Question(
        _(
            "Every number in the variables of the resumed model is compared with the same number of the"
            " undisturbed one. What is the largest difference?"
        ),
        [
            Option(
                0.0,
                _(
                    "The same values, the same reviews in the same order, the same arithmetic on"
                    " the same machine:"
                    " the same bits."
                ),
                label=_("0, to the last bit"),
            ),
            Option(
                1e-6,
                _(
                    "That would be rounding. But a checkpoint keeps every bit, and the same"
                    " processor adds in the"
                    " same order again. Rounding would differ on another machine or under another layout."
                ),
                label=_("about 1e-6: rounding"),
            ),
            Option(
                1e-2,
                _(
                    "So it would be if the remaining reviews came in another order. Their order"
                    " follows from the"
                    " seed, the epoch and the step, and the checkpoint holds those."
                ),
                label=_("about 0.01: other batches"),
            ),
            Option(
                1.0,
                _("So it would be if the run began again, or from other initial values."),
                label=_("about 1: another training"),
            ),
        ],
    )


@prediction("04-other-batch", right="refused")
def other_batch() -> Question:
    """What happens to a run that is resumed with another batch size."""
    return Question(
        _("The checkpoint comes from batches of 64. What does `train` do with `batch_size=128`?"),
        [
            Option(
                "counts",
                _(
                    "In batches of 128 an epoch has 55 steps, so that step 101 lies in the second"
                    " one: the rest of"
                    " the first would be left out in silence."
                ),
                label=_("It goes on with step 101, in batches of 128"),
            ),
            Option(
                "converts",
                _(
                    "100 steps of 64 reviews are 50 of 128. But another batch size is another training: it"
                    " would not end as either run would have ended. `train` does not guess."
                ),
                label=_("It goes on with step 51, in batches of 128"),
            ),
            Option(
                "keeps",
                _("Then the batch size that you wrote would be ignored in silence."),
                label=_("It goes on with step 101, in batches of 64"),
            ),
            Option(
                "refused",
                _(
                    "A checkpoint names the settings that it was trained with, and only the same"
                    " ones go on from it, except the number of epochs."
                ),
                label=_("It refuses"),
            ),
            Option(
                "afresh",
                _("That would overwrite, checkpoint by checkpoint, the run that you wanted to go on with."),
                label=_("It begins again with step 1"),
            ),
        ],
    )


@prediction("04-step-64", right=1)
def step_64() -> Question:
    """Who is faster with 64 reviews in a step."""
    return Question(
        _(
            "A step with 64 reviews: which is faster, one device that computes all of them, or"
            " eight that compute 8 each?"
        ),
        [
            Option(
                1,
                _(
                    "64 reviews are little work, so little can be saved. What is added is eight computations"
                    " to start instead of one, and all-reduces."
                ),
                label=_("one device"),
            ),
            Option(
                "equal",
                _(
                    "They would be if the time that is saved equalled the time that is added. But 64 reviews"
                    " are little work, so little can be saved."
                ),
                label=_("about equal"),
            ),
            Option(
                8,
                _(
                    "Each of the eight computes less, but 64 reviews are little work in any case."
                    " What is added,"
                    " the all-reduces and eight computations to start, takes longer than what is saved."
                ),
                label=_("eight devices"),
            ),
        ],
    )


@prediction("04-seeds", right=(0.51, 0.69))
def seeds() -> Question:
    """How far three seeds lie apart on the real reviews."""
    return Question(
        _(
            "Three runs on the real reviews, with raw tf-idf rows and He's initial values. They"
            " differ only in"
            " the seed of the initial values and of the order of the reviews. Between which test"
            " accuracies do they end?"
        ),
        [
            Option(
                (0.68, 0.69), _("So close together that one run would do. With these settings it would not.")
            ),
            Option((0.6, 0.65), _("A plausible spread, but it is wider: the best is 0.18 above the worst.")),
            Option(
                (0.51, 0.69),
                _("Two of the three guess, the third does not. Whoever tries one seed may report either."),
            ),
            Option(
                (0.7, 0.86), _("Nearly as wide as measured, but too high: none of the three reaches 0.7.")
            ),
            Option((0.86, 0.86), _("That is how rows of unit length end, with the same initial values.")),
        ],
    )
