"""The parts of a step: what is derived from them, what the picture says, and what was recorded."""

import pytest

from course_lib.measured import step_parts
from course_lib.measured.batch_sizes import Machine
from course_lib.measured.step_parts import StepParts

PARTS = StepParts(
    loop=0.005,
    step=0.004,
    packing=0.0003,
    tiny=0.0005,
    share=0.0012,
    exchanges=0.0020,
    num_collectives=3,
    payload_bytes=1_000,
)


def test_dispatch_and_arithmetic_are_told_apart():
    assert (PARTS.dispatch, PARTS.arithmetic) == (0.0005, pytest.approx(0.0007))
    assert PARTS.explained == pytest.approx(0.8)


def test_the_picture_sets_the_parts_beside_the_whole():
    assert repr(step_parts.figure({"data": PARTS})) == (
        "What a training step takes\n"
        "data parallel, mesh 8: packing on the host 0.30 ms, dispatch 0.50 ms, arithmetic 0.70 ms,"
        " collectives 2.00 ms, whole step 5.00 ms"
    )


def test_what_is_saved_is_recorded(tmp_path, monkeypatch):
    machine = Machine(cores=2, threads=1, operations=2, tensorflow="2.21.0")
    step_parts.save({"data": PARTS}, machine, tmp_path)
    monkeypatch.setattr(step_parts, "_FOLDER", tmp_path)
    assert step_parts.recorded() == step_parts.Recorded("make results", machine, {"data": PARTS})


def test_nothing_may_be_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(step_parts, "_FOLDER", tmp_path)
    assert step_parts.recorded() is None


def test_the_three_schemes_were_measured():
    schemes = step_parts.recorded().schemes
    assert list(schemes) == ["data", "model", "spatial"]
    assert [parts.num_collectives for parts in schemes.values()] == [3, 4, 5]
    for parts in schemes.values():
        assert 0 < parts.tiny < parts.share < parts.step
        assert 0 < parts.exchanges < parts.step
