"""A reader's own generator of records, watched live."""

import asyncio

import pytest

from course_lib import CourseError
from course_lib.watch import live


def training(num_steps, begin=1, saved=None):
    """Yields the records of two epochs of a training that begins at any step."""
    step = begin - 1
    try:
        for step in range(begin, num_steps + 1):
            yield {"step": step, "epoch": 1 + (step - 1) // 10, "loss": 1 / step, "accuracy": 0.5}
            if step % 10 == 0:
                yield {"step": step, "epoch": step // 10, "test_loss": 2 / step, "test_accuracy": 0.75}
    finally:
        if saved is not None:
            saved.append(step)


def watch(records, *arguments, **options):
    return asyncio.run(live.watch(records, *arguments, **options))


def test_its_records_are_collected_and_continued():
    first = watch(training(20), steps=20, epochs=2)
    assert [record.step for record in first.steps] == [*range(1, 21)]
    assert [(record.epoch, record.step, record.test_accuracy) for record in first.epochs] == [
        (1, 10, 0.75),
        (2, 20, 0.75),
    ]
    assert not first.stopped
    again = watch(training(30, begin=16), first, steps=30, epochs=3)  # steps 16 to 20 are done again
    assert [record.step for record in again.steps] == [*range(1, 31)]


def test_it_is_closed_at_the_end_so_that_it_can_save():
    saved = []
    watch(training(20, saved=saved), steps=20, epochs=2)
    assert saved == [20]


def test_one_with_nothing_left_to_do_ends():
    history = watch(training(20, begin=21), steps=20, epochs=2)
    assert (history.steps, history.stopped) == ([], False)


@pytest.mark.parametrize("epochs", [0, -1, 1.0, None, 21])
def test_epochs_that_the_steps_do_not_fill_are_refused_before_a_step_is_taken(epochs):
    taken = []
    words = rf"^epochs={epochs} does not fit steps=20\.\n.*whole numbers from 1 to 20\n"
    with pytest.raises(CourseError, match=words):
        watch((taken.append(step) for step in range(20)), steps=20, epochs=epochs)
    assert taken == []


@pytest.mark.parametrize(
    ("records", "steps", "words"),
    [
        (None, 3, "does not train"),
        (training(3), 0, "cannot be watched"),
        (({"step": 1, "loss": 1.0} for _ in range(3)), 3, "lacks 'epoch'"),
    ],
)
def test_what_cannot_be_watched_is_refused(records, steps, words):
    with pytest.raises(CourseError, match=words):
        watch(records, steps=steps)
