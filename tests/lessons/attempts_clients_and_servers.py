"""Attempts at the exercises of `clients_and_servers`."""

from collections import defaultdict
from functools import partial

import numpy as np

from tests.lessons.attempts import Attempts

WHOLE = "unsharded"  # the value of DTensor's UNSHARDED


def in_order(coordinator, train_step, iterator, num_steps, save):
    """Fetching waits, too."""
    steps = [coordinator.schedule(train_step, args=(iterator,)) for _ in range(num_steps)]
    losses = coordinator.fetch(steps)
    save()
    return np.mean(losses)


def one_at_a_time(coordinator, train_step, iterator, num_steps, save):
    losses = [coordinator.schedule(train_step, args=(iterator,)).fetch() for _ in range(num_steps)]
    save()
    return sum(losses) / num_steps


def waits_for_the_last(coordinator, train_step, iterator, num_steps, save):
    steps = [coordinator.schedule(train_step, args=(iterator,)) for _ in range(num_steps)]
    steps[-1].fetch()
    save()
    return np.mean(coordinator.fetch(steps))


def wraps_it(coordinator, train_step, iterator, num_steps, save):
    coordinator.schedule(lambda: train_step(iterator))


def calls_it(coordinator, train_step, iterator, num_steps, save):
    coordinator.schedule(train_step(iterator))


def forgets_the_iterator(coordinator, train_step, iterator, num_steps, save):
    coordinator.schedule(train_step)
    coordinator.join()


def adds_up(coordinator, train_step, iterator, num_steps, save):
    return num_steps * in_order(coordinator, train_step, iterator, num_steps, save)


def by_slices(array, layout):
    components = []
    for place in layout.mesh.local_device_locations():
        slices = []
        for size, name in zip(array.shape, layout.sharding_specs, strict=True):
            length = size if name == WHOLE else size // layout.mesh.dim_size(name)
            start = 0 if name == WHOLE else place[name] * length
            slices.append(slice(start, start + length))
        components.append(array[tuple(slices)])
    return components


def in_pieces(array, layout, axes=3, sizes=None):
    components = []
    for place in layout.mesh.local_device_locations():
        part = array
        for axis, name in enumerate(layout.sharding_specs[:axes]):
            if name != WHOLE:
                pieces = sizes[name] if sizes else layout.num_shards(axis)
                part = np.split(part, pieces, axis)[place[name]]
        components.append(part)
    return components


def two_axes(array, layout):
    rows, columns = layout.sharding_specs
    return [rows, columns]


ATTEMPTS = {
    "clients_and_servers-epoch": Attempts(
        right=(in_order,),
        wrong=(
            (one_at_a_time, "only one worker is ever busy"),
            (waits_for_the_last, "wait for them, save once"),
            (wraps_it, "its arguments apart"),
            (calls_it, "its arguments apart"),
            (forgets_the_iterator, "A step needs the iterator"),
            (adds_up, "fetch the losses"),
        ),
    ),
    "clients_and_servers-mine": Attempts(
        right=(by_slices,),
        wrong=(
            (partial(in_pieces, axes=1), "first axis only"),
            (partial(in_pieces, sizes={"batch": 4, "model": 2}), "any array and any mesh"),
            (partial(in_pieces, sizes=defaultdict(lambda: 2, batch=4)), "any array and any mesh"),
            (partial(in_pieces, axes=2), "any array and any mesh"),
            (two_axes, "not enough values to unpack"),
            (lambda array, layout: array, "a component for each device"),
        ),
    ),
}
