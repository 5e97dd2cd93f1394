"""Pictures of the part on scale: schedules of stages, rings beside trees, times over the payload."""

import math

import pytest

from course_lib import CourseError
from lessons.scale.pipeline import passes
from tests.course import from_lesson
from tests.drawn import elements

schedule = from_lesson("stages.schedules", "schedule")
ring, trees = from_lesson("how_long.chains", "ring", "trees")
time_against_payload = from_lesson("how_long.rings_and_trees", "time_against_payload")


@pytest.mark.parametrize(
    ("stages", "chunks", "microbatches"),
    [(2, 1, 2), (4, 1, 8), (8, 1, 32), (3, 1, 7), (2, 3, 4), (4, 2, 8), (4, 6, 16), (8, 3, 8)],
)
def test_a_schedule_is_as_long_as_the_formula_says_and_its_idle_slots_can_be_counted(
    stages, chunks, microbatches
):
    slots = 3 * (
        microbatches * chunks + stages - 1
    )  # (m + (p - 1) / v) slots of v forward and v backward passes
    assert {lane[-1].end for lane in passes(stages, microbatches, chunks)} <= {*range(slots + 1)}
    figure = schedule(stages, microbatches, chunks)
    idle = 3 * (stages - 1)
    assert figure.text.splitlines()[-1] == f"Each stage is idle in {idle} of {slots} slots."
    assert len(elements(figure, "rect", "idle")) == stages * idle


def test_every_micro_batch_goes_through_every_part_forward_and_then_back():
    done = [each for lane in passes(4, 8, 2) for each in lane]
    times = {(each.is_forward, each.part, each.microbatch): (each.start, each.end) for each in done}
    assert len(times) == len(done) == 2 * 8 * 8
    for (is_forward, part, microbatch), (start, _end) in times.items():
        before = (True, part - 1) if is_forward else (False, part + 1) if part < 7 else (True, 7)
        assert before[1] < 0 or times[*before, microbatch][1] <= start


def test_a_schedule_refuses_what_is_none():
    for wrong in ((0, 8), (4, 33), (4, 8, 1.5)):
        with pytest.raises(CourseError, match="is no number of"):
            schedule(*wrong)
    with pytest.raises(CourseError, match="6 micro-batches are no multiple of 4 stages"):
        schedule(4, 6, chunks=2)


def test_fourteen_messages_wait_for_each_other_in_the_ring_and_six_in_each_tree_and_all_get_the_total():
    chains = [ring(), *trees()]
    assert [len(each.rounds) for each in chains] == [14, 6, 6]
    for each in chains:
        sums = {device: {device} for device in range(8)}
        for messages in each.rounds:
            for sender, receiver in messages:  # a sum is added to, the total replaces
                sums[receiver] = sums[receiver] | sums[sender]
        assert all(held == {*range(8)} for held in sums.values())
        assert each.states(14) == ["total"] * 8
    inner = [{sender for messages in each.rounds[3:] for sender, _receiver in messages} for each in trees()]
    assert inner == [{0, 2, 4, 6}, {1, 3, 5, 7}]  # so that no device passes on more than the payload


def test_the_picture_of_times_tells_its_figures_to_those_who_cannot_see_it():
    picture = time_against_payload(
        lambda devices, payload: devices * 1e-6 + payload / 1e9,
        lambda devices, payload: math.log2(devices) * 1e-6 + payload / 1e9,
    )
    assert "ring of 512 devices: 513 µs for 1 kB, 1.5 ms for 1 MB, 1,000.5 ms for 1 GB" in picture.alt
    assert "0" not in repr(picture)
