"""Attempts at the exercises of `all_reduce`."""

import itertools

import numpy as np

from tests.course import from_lesson
from tests.lessons.attempts import Attempts

ring, seconds = from_lesson("all_reduce.checks", "ring", "seconds")


def naive(mine, device):
    others = [other for other in range(device.count) if other != device.id]
    for other in others:
        device.send(other, mine)
    return mine + sum(device.receive(other) for other in others)


def by_slices(mine, device, *, remainder_last=False):
    """A ring that begins with the device's own chunk, cut by hand; the first or the last chunk is longer."""
    n, total = device.count, np.array(mine)
    lengths = [len(mine) // n + (at < len(mine) % n and not remainder_last) for at in range(n)]
    ends = [*np.cumsum([0, *lengths[:-1]]), len(mine)]
    chunk = [slice(*pair) for pair in itertools.pairwise(ends)]
    for step in range(2 * n - 2):
        device.send(device.next, total[chunk[(device.id - step) % n]])
        arrived, at = device.receive(device.previous), chunk[(device.id - step - 1) % n]
        total[at] = total[at] + arrived if step < n - 1 else arrived
    return total


def uncut(mine, device):
    """A ring in which everyone's array goes round as a whole."""
    total = arrived = mine
    for _step in range(device.count - 1):
        device.send(device.next, arrived)
        arrived = device.receive(device.previous)
        total = total + arrived
    return total


def waits_once_more(mine, device):
    return ring(mine, device) + device.receive(device.previous)


def adds_to_the_end(mine, device):
    """A ring that adds in its second half, too."""
    n, chunks = device.count, np.array_split(mine, device.count)
    for step in range(2 * n - 2):
        device.send(device.next, chunks[(device.id - 1 - step) % n])
        at = (device.id - 2 - step) % n
        chunks[at] = chunks[at] + device.receive(device.previous)
    return np.concatenate(chunks)


def chunk_by_chunk(mine, device):
    """A ring in which a chunk begins when the one before has gone all the way round."""
    n, chunks = device.count, np.array_split(mine, device.count)
    for chunk in range(n):
        for first, adds in ((chunk + 1, True), (chunk, False)):
            place = (device.id - first) % n
            if place:
                received = device.receive(device.previous)
                chunks[chunk] = chunks[chunk] + received if adds else received
            if place < n - 1:
                device.send(device.next, chunks[chunk])
    return np.concatenate(chunks)


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


ATTEMPTS = {
    "all_reduce-ring": Attempts(
        right=(
            by_slices,
            lambda mine, device: by_slices(mine, device, remainder_last=True),
            lambda mine, device: ring(mine, device).tolist(),
        ),
        wrong=(
            (waits_once_more, "nothing arrived"),
            (adds_to_the_end, "added twice"),
            (lambda mine, device: ring(mine.astype(np.float16), device), "is missing"),
            (chunk_by_chunk, "wait for one another"),
            (uncut, "one chunk in each of the"),
            (lambda mine, device: ring(mine, device) / device.count, "That is the mean"),
            (lambda mine, device: ring(mine.astype(np.float64), device), "sent as float64"),
            (equal_chunks_only, "not cut into equal chunks"),
            (naive, "cannot send to"),
            (without_counting, "come to its end"),
        ),
    ),
    "all_reduce-seconds": Attempts(
        right=(
            lambda devices, num_bytes, bandwidth, latency: sum(
                latency + num_bytes / bandwidth / devices for _step in range(2 * devices - 2)
            ),
        ),
        wrong=(
            (lambda *figures: seconds(*figures) / 2, "as many steps again"),
            (lambda *figures: 3 * seconds(*figures), "work out one step"),
            (lambda *figures: round(seconds(*figures), 4), "don't round"),
        ),
    ),
}
