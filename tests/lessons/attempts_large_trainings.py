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


def in_fours(parts, gradient_of, add_up, most=4):
    x, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    cut = [(x[at : at + most], y[at : at + most]) for at in range(0, len(x), most)]
    return at_once(cut, gradient_of, add_up)


def joined(parts, gradient_of, add_up):
    return in_fours(parts, gradient_of, add_up, most=len(parts) * 4)


def means(parts, gradient_of, add_up):
    return add_up(sum(gradient_of(x, y) for x, y in parts)) / add_up(len(parts))


def nothing(parts, gradient_of, add_up):
    at_once(parts, gradient_of, add_up)


def squares_of(gradients, is_split, split=True):
    return sum(np.sum(each**2) for each, cut in zip(gradients, is_split, strict=True) if cut is split)


def in_tensorflow(gradients, is_split, limit, add_up):
    parts = [tf.constant(each) for each, cut in zip(gradients, is_split, strict=True) if cut]
    squares = add_up(tf.linalg.global_norm(parts) ** 2) + squares_of(gradients, is_split, False)
    return [each * np.minimum(1, limit / np.sqrt(squares)) for each in gradients]


def whole_shared_out(gradients, is_split, limit, add_up):
    devices = add_up(1)
    whole = squares_of(gradients, is_split, False) / devices
    norm = np.sqrt(add_up(squares_of(gradients, is_split) + whole))
    return [each * limit / max(norm, limit) for each in gradients]


def never_short(gradients, is_split, limit, add_up):
    squares = add_up(squares_of(gradients, is_split)) + squares_of(gradients, is_split, False)
    return [each * limit / np.sqrt(squares) for each in gradients]


def own_norm(gradients, is_split, limit, add_up):
    return list(tf.clip_by_global_norm([tf.constant(each) for each in gradients], limit)[0])


def second_whole(gradients, is_split, limit, add_up):
    return in_tensorflow(gradients, [True, False, True, True], limit, add_up)


ATTEMPTS = {
    "large_trainings-batch": Attempts(
        right=(at_once, weighted, in_fours),
        wrong=(
            (joined, "more rows than one micro-batch"),
            (means, "mean of means"),
            (nothing, "Is a `return` missing"),
        ),
    ),
    "large_trainings-clip": Attempts(
        right=(in_tensorflow, whole_shared_out),
        wrong=(
            (never_short, "below the limit"),
            (own_norm, "other parts"),
            (second_whole, "who holds them"),
        ),
    ),
}
