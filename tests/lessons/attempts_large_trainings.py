"""Attempts at the exercises of `large_trainings`."""

import numpy as np

import course_lib
from tests.lessons.attempts import Attempts

tf = course_lib.start_tensorflow()


def at_once(parts, gradient_of, add_up):
    gradient = np.array([len(x) * gradient_of(x, y) for x, y in parts]).sum(0)
    both = add_up(np.append(gradient, sum(len(x) for x, _y in parts)))
    return both[:-1] / both[-1]


def weighted(parts, gradient_of, add_up):
    rows = add_up(sum(len(x) for x, _y in parts))
    return add_up(sum(gradient_of(x, y) * (len(x) / rows) for x, y in parts))


def joined(parts, gradient_of, add_up):
    x, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    return add_up(len(x) * gradient_of(x, y)) / add_up(len(x))


def every_round(parts, gradient_of, add_up):
    total = rows = 0
    for x, y in parts:
        total += add_up(len(x) * gradient_of(x, y))
        rows += add_up(len(x))
    return total / rows


def means(parts, gradient_of, add_up):
    return add_up(sum(gradient_of(x, y) for x, y in parts)) / add_up(len(parts))


def means_over_rows(parts, gradient_of, add_up):
    return add_up(sum(gradient_of(x, y) for x, y in parts)) / add_up(sum(len(x) for x, _y in parts))


def own_rows(parts, gradient_of, add_up):
    return add_up(sum(len(x) * gradient_of(x, y) for x, y in parts)) / sum(len(x) for x, _y in parts)


def nothing(parts, gradient_of, add_up):
    at_once(parts, gradient_of, add_up)


def in_tensorflow(gradients, is_split, limit, add_up):
    parts = [tf.constant(each) for each, cut in zip(gradients, is_split, strict=True) if cut]
    whole = [tf.constant(each) for each, cut in zip(gradients, is_split, strict=True) if not cut]
    squares = add_up(tf.linalg.global_norm(parts) ** 2) + tf.linalg.global_norm(whole).numpy() ** 2
    return [each * np.minimum(1, limit / np.sqrt(squares)) for each in gradients]


def whole_shared_out(gradients, is_split, limit, add_up):
    devices = add_up(1)
    shares = [
        np.sum(each**2) / (1 if cut else devices) for each, cut in zip(gradients, is_split, strict=True)
    ]
    norm = np.sqrt(add_up(sum(shares)))
    return [each * limit / max(norm, limit) for each in gradients]


def never_short(gradients, is_split, limit, add_up):
    squares = [np.sum(each**2) for each in gradients]
    parts = add_up(sum(each for each, cut in zip(squares, is_split, strict=True) if cut))
    norm = np.sqrt(parts + sum(each for each, cut in zip(squares, is_split, strict=True) if not cut))
    return [each * limit / norm for each in gradients]


def own_norm(gradients, is_split, limit, add_up):
    return list(tf.clip_by_global_norm([tf.constant(each) for each in gradients], limit)[0])


def all_added(gradients, is_split, limit, add_up):
    norm = np.sqrt(add_up(sum(np.sum(each**2) for each in gradients)))
    return [each * min(1, limit / norm) for each in gradients]


def squares_number_by_number(gradients, is_split, limit, add_up):
    parts = sum(np.sum(add_up(each**2)) for each, cut in zip(gradients, is_split, strict=True) if cut)
    whole = sum(np.sum(each**2) for each, cut in zip(gradients, is_split, strict=True) if not cut)
    return [each * min(1, limit / np.sqrt(parts + whole)) for each in gradients]


def early(gradients, is_split, limit, add_up):
    if np.sqrt(sum(np.sum(each**2) for each in gradients)) <= limit:
        return gradients
    return whole_shared_out(gradients, is_split, limit, add_up)


def second_whole(gradients, is_split, limit, add_up):
    first, whole, last = (np.sum(each**2) for each in gradients)
    norm = np.sqrt(add_up(first + last) + whole)
    return [each * min(1, limit / norm) for each in gradients]


def unclipped(gradients, is_split, limit, add_up):
    return gradients


ATTEMPTS = {
    "large_trainings-batch": Attempts(
        right=(at_once, weighted),
        wrong=(
            (joined, "more rows than one micro-batch"),
            (every_round, "exchange too much"),
            (means, "mean of means"),
            (means_over_rows, "divided by the rows"),
            (own_rows, "rows of all devices"),
            (nothing, "Is a `return` missing"),
        ),
    ),
    "large_trainings-clip": Attempts(
        right=(in_tensorflow, whole_shared_out),
        wrong=(
            (never_short, "below the limit"),
            (own_norm, "other parts"),
            (all_added, "several times"),
            (squares_number_by_number, "more than two numbers"),
            (unclipped, "who holds them"),
            (early, "leaves before"),
            (second_whole, "who holds them"),
        ),
    ),
}
