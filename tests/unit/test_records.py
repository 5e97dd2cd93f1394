"""Records: a history keeps those of steps and those of epochs apart, in their order."""

from course_lib.training.records import History
from tests.fake_run import FakeRun, epoch_record, history, step_record


def test_a_history_takes_the_records_of_a_run_as_they_come():
    collected, other = History(), History()
    for record in FakeRun(epochs=2, steps_per_epoch=3):
        collected.add(record)
    assert collected == History.of(FakeRun(epochs=2, steps_per_epoch=3)) == history(6, steps_per_epoch=3)
    assert collected.steps[3] == step_record(4, 3)
    assert collected.epochs == [epoch_record(1, 3), epoch_record(2, 3)]
    assert other == History([], [], False)
