"""Attempts at the exercises of lesson 02."""

import itertools

import numpy as np

from course_lib import UNSHARDED, LayoutSpec, MeshSpec
from lessons.lesson_02_communication.all_reduces import naive, ring
from tests.lessons.attempts import Attempts

GRID, LINE = MeshSpec([("x", 4), ("y", 2)]), MeshSpec([("x", 8)])
SUM, GATHER = ("all-reduce", "y", 128), ("all-gather", "x", 64)


def on_grid(rows, columns):
    return LayoutSpec([rows, columns], GRID)


def others(device):
    return [other for other in range(device.count) if other != device.id]


def by_doubling(mine, device):
    """Sends whole arrays log n times, where the number of devices is a power of two."""
    if device.count & (device.count - 1):
        return naive(mine, device)
    for distance in (1, 2, 4)[: device.count.bit_length() - 1]:
        device.send(device.id ^ distance, mine)
        mine = mine + device.receive(device.id ^ distance)
    return mine


def with_lists(mine, device):
    for other in others(device):
        device.send(other, mine.tolist())
    vectors = [device.receive(other).tolist() for other in others(device)]
    return [sum(numbers) for numbers in zip(mine.tolist(), *vectors, strict=True)]


def only_device_0(mine, device):
    if device.id:
        device.send(0, mine)
        return mine
    return mine + sum(device.receive(other) for other in others(device))


def own_twice(mine, device):
    return naive(mine, device) + mine


def to_itself(mine, device):
    for other in range(device.count):
        device.send(other, mine)
    return sum(device.receive(other) for other in range(device.count))


def waits_once_more(mine, device):
    return naive(mine, device) + sum(device.receive(other) for other in others(device))


def sends_twice(mine, device):
    for other in others(device):
        device.send(other, mine)
    return naive(mine, device)


def by_slices(mine, device):
    """A ring that begins with the device's own chunk, cut by hand; the first chunks are longer."""
    n, total = device.count, np.array(mine)
    ends = np.cumsum([0, *(len(mine) // n + (at < len(mine) % n) for at in range(n))])
    chunk = [slice(*pair) for pair in itertools.pairwise(ends)]
    for step in range(2 * n - 2):
        device.send(device.next, total[chunk[(device.id - step) % n]])
        arrived, at = device.receive(device.previous), chunk[(device.id - step - 1) % n]
        total[at] = total[at] + arrived if step < n - 1 else arrived
    return total


def mistaken(*, adding=0, copying=0, off_by=0, keeps_adding=False, joined=np.concatenate):
    """Returns a ring with a mistake: steps too many or too few, the chunk beside the right one, no copies."""

    def all_reduce(mine, device):
        n, chunks = device.count, np.array_split(mine, device.count)
        for half, num_steps in enumerate((n - 1 + adding, n - 1 + copying)):
            for step in range(num_steps):
                device.send(device.next, chunks[(device.id - 1 + half - step) % n])
                at = (device.id - 2 + half - step + off_by * (not half)) % n
                received = device.receive(device.previous)
                chunks[at] = received if half and not keeps_adding else chunks[at] + received
        return joined(chunks)

    return all_reduce


def without_counting(mine, device):
    step, chunks = 0, np.array_split(mine, device.count)
    while step < device.count - 1:
        device.send(device.next, chunks[(device.id - 1 - step) % device.count])
        at = (device.id - 2 - step) % device.count
        chunks[at] = chunks[at] + device.receive(device.previous)
    return np.concatenate(chunks)


def whole_arrays(mine, device):
    total, passed = mine, mine
    for _step in range(device.count - 1):
        device.send(device.next, passed)
        passed = device.receive(device.previous)
        total = total + passed
    return total


def equal_chunks_only(mine, device):
    np.split(mine, device.count)
    return ring(mine, device)


ATTEMPTS = {
    "02-products": Attempts(
        right=([list(SUM), list(GATHER)],),
        wrong=(
            ((("all-reduce", "y", 512), GATHER), "whole product"),
            ((SUM, ("all-gather", "x", 128)), "columns are split"),
            ((("all-reduce", "y", 32), ("all-gather", "x", 16)), "elements"),
            ((GATHER, SUM), "partial sum"),
            ((SUM, "nothing"), "In place 1"),
        ),
    ),
    "02-free": Attempts(
        right=((on_grid("y", UNSHARDED), on_grid(UNSHARDED, "x")),),
        wrong=(
            ((on_grid("x", UNSHARDED), on_grid(UNSHARDED, UNSHARDED)), "multiplications"),
            ((on_grid("x", "y"), on_grid("y", UNSHARDED)), "all-reduce over y"),
            ((on_grid(UNSHARDED, "x"), on_grid("y", UNSHARDED)), "The inner axis is split"),
            ((LayoutSpec(["x", UNSHARDED], LINE), LayoutSpec.replicated(LINE, 2)), "grid"),
            ((("x", UNSHARDED), (UNSHARDED, "y")), "LayoutSpec"),
        ),
    ),
    "02-naive": Attempts(
        right=(ring, by_doubling, with_lists),
        wrong=(
            (only_device_0, "are missing"),
            (own_twice, "more than once"),
            (to_itself, "cannot send to 0"),
            (waits_once_more, "none will come"),
            (lambda mine, device: mine * device.count, "sends anything"),
            (sends_twice, "once to each other device"),
            (lambda mine, device: naive(mine, device).size * None, "TypeError"),
            (7, "function"),
        ),
    ),
    "02-ring": Attempts(
        right=(by_slices,),
        wrong=(
            (mistaken(adding=-1), "are missing"),
            (mistaken(off_by=1), "are missing"),
            (mistaken(keeps_adding=True), "more than once"),
            (mistaken(copying=1), "one chunk in each of the"),
            (mistaken(joined=list), "device"),
            (lambda mine, device: np.split(ring(mine, device), device.count)[device.id], "one chunk only"),
            (whole_arrays, "one chunk in each of the"),
            (lambda mine, device: ring(mine.astype(np.float64), device), "one chunk in each of the"),
            (equal_chunks_only, "not cut into equal chunks"),
            (naive, "cannot send to"),
            (without_counting, "count its steps"),
            (lambda mine, device: print(ring(mine, device)), "return"),
        ),
    ),
    "02-via": Attempts(
        right=(),
        wrong=(
            (on_grid("x", "y"), "as before"),
            (on_grid("y", UNSHARDED), "896"),
            (LayoutSpec(["x", UNSHARDED], LINE), "grid"),
            (LayoutSpec(["x"], GRID), "axis"),
            (["x", UNSHARDED], "LayoutSpec"),
        ),
    ),
}
