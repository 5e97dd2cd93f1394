"""Lesson `all_reduce`'s devices that send and receive."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import CourseError
from course_lib.exercises.checks import check
from course_lib.exercises.limit import TooLong
from tests.course import from_lesson

course_ring = from_lesson("all_reduce.checks", "ring")
run_on_each = from_lesson("all_reduce.messages", "run_on_each")
Ring = from_lesson("all_reduce.ring", "Ring")


@given(count=st.integers(2, 8), chunk=st.integers(1, 5))
@settings(deadline=None, max_examples=30)
def test_the_solution_sends_what_the_stepper_shows(count, chunk):
    parts = [np.ones(count * chunk, "float32")] * count
    ring = Ring("all-reduce", count, whole_bytes=parts[0].nbytes)
    exchange = run_on_each(course_ring, parts, ring=True)
    assert exchange.bytes_sent == (ring.bytes_sent(ring.num_steps),) * count
    assert exchange.time == ring.bytes_sent(ring.num_steps)


def test_a_link_carries_one_byte_at_a_time_in_each_direction():
    def to_the_first(mine, device):
        if device.id:
            return device.send(0, mine)
        return [device.receive(other) for other in range(1, device.count)]

    def from_the_first(mine, device):
        if device.id:
            return device.receive(0)
        return [device.send(other, mine) for other in range(1, device.count)]

    def handed_on(mine, device):
        if device.id:
            device.receive(device.previous)
        device.send(device.next, mine)

    part = np.zeros(2, "float32")
    assert run_on_each(to_the_first, [part] * 5).time == 4 * part.nbytes
    assert run_on_each(from_the_first, [part] * 5).time == 4 * part.nbytes
    assert run_on_each(handed_on, [part] * 5).time == 4 * part.nbytes


def test_a_reader_sees_the_error_and_the_line_of_their_own_function():
    def failing(mine, device):
        device.send(device.next, mine)
        return mine[device.count * 99]

    message = check("all_reduce-ring", failing).message
    assert "IndexError" in message
    assert "return mine[device.count * 99]" in message


def test_arrays_arrive_in_order_and_as_they_were_sent():
    def rude(mine, device):
        for _number in range(3):
            device.send(device.next, mine)
            mine += 1
        return [int(device.receive(device.previous)[0]) for _number in range(3)]

    part = np.array([1.0, 2.0])
    assert run_on_each(rude, [part] * 5).results == ([1, 2, 3],) * 5
    assert part.tolist() == [1.0, 2.0]


def test_nobody_waits_for_ever_and_the_cause_is_told():
    def waiting(mine, device):
        return mine if device.id == 1 else device.receive(1)

    def broken(mine, device):
        return 1 / 0 if device.id == 2 else device.receive(2)

    with pytest.raises(CourseError, match="Device 0 waited for an array from device 1, and nothing arrived"):
        run_on_each(waiting, [[0.0]] * 3)
    with pytest.raises(ZeroDivisionError):
        run_on_each(broken, [[0.0]] * 3)


def sends_and_receives(mine, device):
    while True:
        device.send(device.next, mine)
        mine = device.receive(device.previous)


def computes_and_hides_errors(mine, device):
    while True:
        try:
            mine = mine + 1
        except Exception:
            mine = 0


@pytest.mark.parametrize("endless", [sends_and_receives, computes_and_hides_errors])
def test_a_function_that_does_not_end_is_ended_on_every_device(endless):
    before = set(threading.enumerate())
    with pytest.raises(TooLong, match=r"still ran after 0\.3 s.*\n.*\n.*come to its end"):
        run_on_each(endless, [[0.0]] * 4, seconds=0.3)
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize(
    ("ring", "to", "words"),
    [
        (False, 0, "Device 0 cannot send to 0"),
        (False, 3, "cannot send to 3"),
        (False, 1.5, "cannot send to 1.5"),
        (True, 2, "`device.next`"),
    ],
)
def test_a_device_reaches_only_others_that_there_are(ring, to, words):
    def sending(mine, device):
        if device.id == 0:
            device.send(to, mine)

    with pytest.raises(CourseError, match=words):
        run_on_each(sending, [[0.0]] * 3, ring=ring)
    with pytest.raises(CourseError, match="cannot receive from"):
        run_on_each(lambda mine, device: device.receive(device.id), [[0.0]] * 3, ring=ring)
