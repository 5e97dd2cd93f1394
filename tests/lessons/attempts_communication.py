"""Attempts at the exercises of `communication`."""

import itertools

import numpy as np

from course_lib import MeshSpec
from course_lib.devices import dtensor
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED
from tests.course import from_lesson
from tests.lessons.attempts import Attempts

ring = from_lesson("communication.checks", "ring")

GRID = MeshSpec([("x", 4), ("y", 2)])


def naive(mine, device):
    others = [other for other in range(device.count) if other != device.id]
    for other in others:
        device.send(other, mine)
    return mine + sum(device.receive(other) for other in others)


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


def waits_once_more(mine, device):
    return ring(mine, device) + device.receive(device.previous)


def mistaken(*, adding=0, keeps_adding=False):
    """Returns a ring with a mistake: steps too many or too few, or sums in place of copies."""

    def all_reduce(mine, device):
        n, chunks = device.count, np.array_split(mine, device.count)
        for half, num_steps in enumerate((n - 1 + adding, n - 1)):
            for step in range(num_steps):
                device.send(device.next, chunks[(device.id - 1 + half - step) % n])
                at = (device.id - 2 + half - step) % n
                received = device.receive(device.previous)
                chunks[at] = received if half and not keeps_adding else chunks[at] + received
        return np.concatenate(chunks)

    return all_reduce


def without_counting(mine, device):
    step, chunks = 0, np.array_split(mine, device.count)
    while step < device.count - 1:
        device.send(device.next, chunks[(device.id - 1 - step) % device.count])
        at = (device.id - 2 - step) % device.count
        chunks[at] = chunks[at] + device.receive(device.previous)
    return np.concatenate(chunks)


def equal_chunks_only(mine, device):
    np.split(mine, device.count)
    return ring(mine, device)


def relaid(tensor, *ways):
    """Returns a DTensor moved from layout to layout on the grid; "." stands for no mesh dimension."""
    for way in ways:
        tensor = dtensor.dtensor.relayout(tensor, dtensor.to_layout(on_grid(*way)))
    return tensor


def on_grid(*entries):
    return LayoutSpec([UNSHARDED if entry == "." else entry for entry in entries], GRID)


def in_one_function(matrix):
    return dtensor.tf.function(lambda tensor: relaid(tensor, "x.", "xy"))(matrix)


ATTEMPTS = {
    "communication-ring": Attempts(
        right=(by_slices, lambda mine, device: ring(mine, device).tolist()),
        wrong=(
            (waits_once_more, "none will come"),
            (mistaken(adding=-1), "is missing"),
            (mistaken(keeps_adding=True), "more than once"),
            (lambda mine, device: ring(mine.astype(np.float64), device), "one chunk in each of the"),
            (equal_chunks_only, "not cut into equal chunks"),
            (naive, "cannot send to"),
            (without_counting, "come to its end"),
            (lambda mine, device: print(ring(mine, device)), "`None`"),
        ),
    ),
    "communication-blocks": Attempts(
        right=(in_one_function, lambda matrix: relaid(matrix, ".x", "x.", "xy")),
        wrong=(
            (lambda matrix: relaid(matrix, "xy"), "1536 bytes: all-reduce over x, 1024 bytes"),
            (lambda matrix: relaid(matrix, "x."), "it should have [x, y]"),
            (lambda matrix: relaid(matrix + 1.0, "x.", "xy"), "not those of the matrix"),
            (dtensor.to_numpy, "Return a DTensor"),
        ),
    ),
}
