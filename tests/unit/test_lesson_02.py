"""Lesson 02's own checks: all-reduces that readers write in other ways, and devices that send and receive."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import UNSHARDED, CourseError, LayoutSpec, MeshSpec
from course_lib.exercises.checks import Status, check
from course_lib.specs import communication
from lessons.lesson_02_communication import all_reduces as attempts
from lessons.lesson_02_communication import checks as lesson_02
from lessons.lesson_02_communication import silent
from lessons.lesson_02_communication.messages import run_on_each
from lessons.lesson_02_communication.ring import Ring

GROUPS = st.integers(1, 8).flatmap(
    lambda count: st.integers(0, 20).flatmap(
        lambda length: st.lists(
            st.lists(st.integers(-99, 99), min_size=length, max_size=length), min_size=count, max_size=count
        )
    )
)


@pytest.mark.parametrize("attempt", [attempts.naive, attempts.ring], ids=["naive", "ring"])
@given(group=GROUPS)
@settings(deadline=None)
def test_the_courses_solutions_add_on_every_device(attempt, group):
    parts = [np.array(part, "float32") for part in group]
    exchange = run_on_each(attempt, parts)
    for result in exchange.results:
        assert result.tolist() == [sum(numbers) for numbers in zip(*group, strict=True)]


@given(count=st.integers(2, 8), chunk=st.integers(1, 5))
@settings(deadline=None)
def test_the_solution_sends_what_the_stepper_shows(count, chunk):
    parts = [np.ones(count * chunk, "float32")] * count
    ring = Ring("all-reduce", count, whole_bytes=parts[0].nbytes)
    exchange = run_on_each(attempts.ring, parts, ring=True)
    assert exchange.bytes_sent == (ring.bytes_sent(ring.num_steps),) * count
    assert exchange.arrays_sent == (ring.num_steps,) * count
    assert run_on_each(attempts.naive, parts).bytes_sent == ((count - 1) * parts[0].nbytes,) * count


def test_the_solution_sends_the_chunks_that_the_stepper_shows():
    count, ring = 4, Ring("all-reduce", 4, whole_bytes=16)
    sent = {device: [] for device in range(count)}

    def recorded(mine, device):
        send = device.send
        device.send = lambda to, array: (sent[device.id].append(array.tolist()), send(to, array))
        return attempts.ring(mine, device)

    run_on_each(recorded, [[100**chunk for chunk in range(count)]] * count, ring=True)
    for step in range(1, ring.num_steps + 1):
        for message in ring.messages(step):
            (number,) = sent[message.sender][step - 1]
            assert number == len(message.sources) * 100**message.chunk


def by_doubling(mine, device):
    """Recursive doubling: right, and each device sends whole arrays, where the count is a power of two."""
    if device.count & (device.count - 1):
        return attempts.naive(mine, device)
    distance = 1
    while distance < device.count:
        device.send(device.id ^ distance, mine)
        mine = mine + device.receive(device.id ^ distance)
        distance *= 2
    return mine


def with_lists(mine, device):
    for other in range(device.count):
        if other != device.id:
            device.send(other, mine.tolist())
    vectors = [device.receive(other).tolist() for other in range(device.count) if other != device.id]
    return [sum(numbers) for numbers in zip(mine.tolist(), *vectors, strict=True)]


def ring_by_slices(mine, device):
    """Cuts the chunks itself; the first ones are longer."""
    n, total = device.count, np.array(mine)
    ends = np.cumsum([0, *(len(mine) // n + (at < len(mine) % n) for at in range(n))])
    chunk = [slice(*pair) for pair in itertools.pairwise(ends)]
    for step in range(2 * n - 2):
        device.send(device.next, total[chunk[(device.id - step) % n]])
        arrived, at = device.receive(device.previous), chunk[(device.id - step - 1) % n]
        total[at] = total[at] + arrived if step < n - 1 else arrived
    return total


@pytest.mark.parametrize(
    ("exercise_id", "answer"),
    [("02-naive", by_doubling), ("02-naive", with_lists), ("02-ring", ring_by_slices)],
)
def test_an_all_reduce_may_be_written_in_other_ways(exercise_id, answer):
    assert repr(check(exercise_id, answer)) == "✓ Right."


def test_a_half_written_all_reduce_is_open():
    for exercise_id in ("02-naive", "02-ring"):
        assert check(exercise_id, lambda mine, device: ...).status is Status.OPEN
        assert check(exercise_id, lambda mine, device: mine + ...).status is Status.OPEN


def test_a_reader_sees_the_error_and_the_line_of_their_own_function():
    def failing(mine, device):
        device.send(device.next, mine)
        return mine[device.count * 99]

    message = check("02-ring", failing).message
    assert "IndexError" in message
    assert "return mine[device.count * 99]" in message


def test_what_a_device_changes_nobody_else_sees():
    def rude(mine, device):
        device.send(device.next, mine)
        mine[:] = 0
        return device.receive(device.previous)

    part = np.array([1.0, 2.0])
    assert [each.tolist() for each in run_on_each(rude, [part, part]).results] == [[1.0, 2.0]] * 2
    assert part.tolist() == [1.0, 2.0]


def test_arrays_of_one_device_arrive_in_order():
    def twice(mine, device):
        for number in (1, 2, 3):
            device.send(device.next, number)
        return [int(device.receive(device.previous)) for _number in range(3)]

    assert run_on_each(twice, [[0.0]] * 5).results == ([1, 2, 3],) * 5


def test_nobody_waits_for_ever():
    def waiting(mine, device):
        if device.id == 1:
            return mine
        return device.receive(1)

    with pytest.raises(CourseError, match="Device 0 waits for an array from device 1, and none will come"):
        run_on_each(waiting, [[0.0]] * 3)


def test_the_cause_is_told_not_that_others_wait_for_it():
    def broken(mine, device):
        if device.id == 2:
            raise ZeroDivisionError("device 2")
        return device.receive(2)

    with pytest.raises(ZeroDivisionError, match="device 2"):
        run_on_each(broken, [[0.0]] * 3)


@pytest.mark.parametrize(
    ("ring", "to", "words"),
    [
        (False, 0, "Device 0 cannot send to 0"),
        (False, 3, "cannot send to 3"),
        (False, -1, "cannot send to -1"),
        (False, 1.5, "cannot send to 1.5"),
        (False, True, "cannot send to True"),
        (True, 2, "`device.next`"),
    ],
)
def test_a_device_sends_only_to_others_that_it_can_reach(ring, to, words):
    def sending(mine, device):
        if device.id == 0:
            device.send(to, mine)

    with pytest.raises(CourseError, match=words):
        run_on_each(sending, [[0.0]] * 3, ring=ring)


@pytest.mark.parametrize("sender", [0, 2, 3, "1"])
def test_in_a_ring_a_device_hears_the_previous_one_only(sender):
    def listening(mine, device):
        device.send(device.next, mine)
        return device.receive(sender if device.id == 0 else device.previous)

    if sender == 2:
        assert len(run_on_each(listening, [[0.0]] * 3, ring=True).results) == 3
    else:
        with pytest.raises(CourseError, match="cannot receive from"):
            run_on_each(listening, [[0.0]] * 3, ring=True)


def test_only_numbers_are_sent():
    with pytest.raises(CourseError, match="no array of numbers"):
        run_on_each(lambda mine, device: device.send(device.next, ["a"]), [[0.0]] * 2)


def test_a_device_says_what_it_is():
    names = run_on_each(lambda mine, device: repr(device), [[0.0]] * 2).results
    assert names == ("<device 0 of 2>", "<device 1 of 2>")


def test_no_other_way_of_exercise_5_sends_less():
    grid, shape = MeshSpec([("x", 4), ("y", 2)]), (16, 16)
    source, target = LayoutSpec([UNSHARDED, "x"], grid), LayoutSpec(["x", "y"], grid)
    sent = {}
    for pair in itertools.product([UNSHARDED, "x", "y"], repeat=2):
        if pair[0] != pair[1] or pair[0] == UNSHARDED:
            way = LayoutSpec(pair, grid)
            legs = (
                communication.relayout(source.of(shape), way),
                communication.relayout(way.of(shape), target),
            )
            sent[pair] = sum(leg.bytes_sent for leg in legs)
    assert min(sent.values()) == sent["x", UNSHARDED] == lesson_02._LEAST
    assert sorted(sent.values())[1] > lesson_02._LEAST


def test_two_messages_have_one_name_from_12_devices_on():
    assert all(not silent.same_names(count) for count in range(12))
    assert silent.same_names(12) == [((1, 10), (11, 0)), ((1, 11), (11, 1))]
