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
                0.55, _("One model alone is off by about 0.05. The luckiest of a hundred is off by far more.")
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
                0.7,
                _(
                    "That is four times what chance is usually off by. One model reaches it once in about"
                    " 25,000 tries, so that a hundred tries hardly do."
                ),
            ),
            Option(
                0.9, _("That would be eight times what chance is usually off by: no hundred tries get there.")
            ),
        ],
    )


@prediction("04-close", right=40)
def close() -> Question:
    """The step at which a run stands that was closed after 40 records."""
    return Question(
        _("`close` left a checkpoint. Which step does its model belong to?"),
        [
            Option(
                32,
                _(
                    "One call of 32 steps. But the run does not throw away the eight steps whose records"
                    " you took: it repeats them from the state before the second call."
                ),
            ),
            Option(
                40,
                _(
                    "The run keeps the state before each call. `close` goes back to step 32 and repeats the"
                    " eight steps whose records you took."
                ),
            ),
            Option(
                50,
                _(
                    "That is how far the second call had gone: to the end of the epoch. A checkpoint there"
                    " would skip ten steps that nobody has a record of, so `close` takes them back."
                ),
            ),
            Option(
                64,
                _(
                    "Two calls of 32 steps. But an epoch has 50, so the second call ended there; and `close`"
                    " takes back the steps that nobody has a record of."
                ),
            ),
        ],
        field=True,
        otherwise=_("You took 40 records, one a step. What is there to do with steps beyond them?"),
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
                    " the same machine: the same bits. (A run that began again would end at them, too.)"
                ),
                label=_("0, to the last bit"),
            ),
            Option(
                1e-6,
                _(
                    "That would be rounding. But a checkpoint keeps every bit, and the same processor adds in"
                    " the same order again. Rounding would differ on another machine or under another layout."
                ),
                label=_("about 1e-6"),
            ),
            Option(
                0.1,
                _(
                    "So it would be, or more, from other initial values or with the reviews in another order."
                    " But the checkpoint holds the values, and the order follows from the seed, the epoch and"
                    " the step, which it holds too."
                ),
                label=_("0.1 or more"),
            ),
        ],
    )


@prediction("04-other-batch", right="refused")
def other_batch() -> Question:
    """What happens to a run that is resumed with another batch size."""
    return Question(
        _(
            "The checkpoint is of step 40, in batches of 64. What does this course's `train` do with"
            " `batch_size=128`?"
        ),
        [
            Option(
                "counts",
                _(
                    "A library may do that. But in batches of 128 an epoch has 25 steps: the last 640 reviews"
                    " of the first epoch and 15 batches of the second would be left out in silence."
                ),
                label=_("It goes on with step 41, in batches of 128"),
            ),
            Option(
                "converts",
                _(
                    "40 steps of 64 reviews are 20 of 128. But another batch size is another training: it"
                    " would not end as either run would have ended. `train` does not guess."
                ),
                label=_("It goes on with step 21, in batches of 128"),
            ),
            Option(
                "keeps",
                _("Then the batch size that you wrote would be ignored in silence."),
                label=_("It goes on with step 41, in batches of 64"),
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
                label=_("about equal: the longer time is less than 1.25 times the shorter one"),
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


@prediction("04-seeds", right=0.2, fits=lambda measured: 0.15 < measured < 0.25)
def seeds() -> Question:
    """How far three seeds lie apart on the real reviews."""
    return Question(
        _(
            "Three runs on the real reviews, with raw tf-idf rows and He's initial values. They differ only"
            " in the seed. How far apart are the best and the worst test accuracy after three epochs?"
        ),
        [
            Option(
                0.01,
                _(
                    "So close together that one run would do. With unit rows and He's values it is so,"
                    " with these settings it is not."
                ),
                label=_("about 0.01"),
            ),
            Option(
                0.05,
                _(
                    "With raw rows and N(0, 1) it is about that."
                    " Here one seed has begun to learn, two have not."
                ),
                label=_("about 0.05"),
            ),
            Option(
                0.2,
                _(
                    "From 0.51, hardly better than a guess, to 0.69."
                    " Whoever tries one seed may report either."
                ),
                label=_("about 0.2"),
            ),
        ],
    )
