"""Attempts at the exercises of `zero_and_fsdp`."""

import numpy as np

from tests.course import from_lesson
from tests.lessons.attempts import Attempts

(all_gather, momentum, reduce_scatter) = from_lesson(
    "zero_and_fsdp.one_device", "all_gather", "momentum", "reduce_scatter"
)

WHOLE = "unsharded"


def cut_with_numpy(weight, velocity, gradient, device):
    gradient = reduce_scatter(gradient)
    devices = len(weight) // len(gradient)
    rows, velocity = momentum(np.split(weight, devices)[device], velocity, gradient)
    return [all_gather(rows), velocity]


def in_two_buckets(weight, velocity, gradient, device):
    parts = [reduce_scatter(gradient[:, :1]), reduce_scatter(gradient[:, 1:])]
    rows = slice(device * len(velocity), (device + 1) * len(velocity))
    own, velocity = momentum(weight[rows], velocity, np.concatenate(parts, axis=1))
    return np.concatenate([all_gather(own[:, :1]), all_gather(own[:, 1:])], axis=1), velocity


def velocity_gathered(*given):
    weight, velocity = cut_with_numpy(*given)
    return weight, all_gather(velocity)


def added_up_twice(weight, velocity, gradient, device):
    reduce_scatter(gradient)
    return cut_with_numpy(weight, velocity, gradient, device)


def update_not_stored(weight, velocity, gradient, device):
    rows = slice(device * len(velocity), (device + 1) * len(velocity))
    own, _velocity = momentum(weight[rows], velocity, reduce_scatter(gradient))
    return all_gather(own), velocity


def weight_alone(*given):
    return cut_with_numpy(*given)[0]


def first_that_fits(entries, shape, devices):
    fits = [axis for axis in range(len(shape)) if entries[axis] == WHOLE and shape[axis] % devices == 0]
    return tuple("batch" if axis in fits[:1] else entry for axis, entry in enumerate(entries))


def in_place(entries, shape, devices):
    for axis, size in enumerate(shape):
        if entries[axis] == WHOLE and not size % devices:
            entries[axis] = "batch"
            return entries
    return entries


def largest(entries, shape, devices):
    fits = [axis for axis in range(len(shape)) if entries[axis] == WHOLE and shape[axis] % devices == 0]
    best = max(fits, key=lambda axis: shape[axis], default=None)
    return ["batch" if axis == best else entry for axis, entry in enumerate(entries)]


def nothing_where_none_fits(entries, shape, devices):
    found = list(first_that_fits(entries, shape, devices))
    return found if "batch" in found else None


ATTEMPTS = {
    "zero_and_fsdp-update": Attempts(
        right=(cut_with_numpy, in_two_buckets),
        wrong=(
            (velocity_gathered, "Nothing else has to be gathered"),
            (added_up_twice, "more numbers than the gradient has"),
            (update_not_stored, "rows of the velocity"),
            (weight_alone, "rows of the velocity"),
        ),
    ),
    "zero_and_fsdp-axis": Attempts(
        right=(first_that_fits, in_place),
        wrong=(
            (largest, "which of them can be split"),
            (nothing_where_none_fits, "gives `None`"),
        ),
    ),
}
