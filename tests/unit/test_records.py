"""Records: what training promises to say of a step and of an epoch."""

import dataclasses

import pytest

from course_lib.training.records import EpochRecord, History, StepRecord


def test_a_step_record_has_the_fields_that_live_plots_read_in_this_order():
    record = StepRecord(1, 1, 0.7, 0.5, 64, 0.003)
    assert dataclasses.asdict(record) == {
        "step": 1,
        "epoch": 1,
        "loss": 0.7,
        "accuracy": 0.5,
        "examples": 64,
        "seconds": 0.003,
    }


def test_an_epoch_record_names_its_checkpoint():
    record = EpochRecord(2, 780, 0.4, 0.8, None, None, "checkpoint-000002-step-000780")
    assert (record.epoch, record.step, record.checkpoint) == (2, 780, "checkpoint-000002-step-000780")


def test_records_cannot_be_changed_after_the_fact():
    with pytest.raises(dataclasses.FrozenInstanceError):
        StepRecord(1, 1, 0.7, 0.5, 64, 0.003).loss = 0.0


def test_each_history_has_lists_of_its_own():
    first, second = History(), History()
    first.steps.append(StepRecord(1, 1, 0.7, 0.5, 64, 0.003))
    assert (second.steps, second.epochs, second.stopped) == ([], [], False)
