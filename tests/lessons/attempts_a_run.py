"""Attempts at the exercises of `a_run`."""

import itertools
import os
from pathlib import Path

import numpy as np

import course_lib
from tests.lessons.attempts import Attempts

tf = course_lib.start_tensorflow()


def warm_up(step, last_step):
    if step < 50:
        return 3e-3 * (step + 1) / 50
    return 3e-3 * (last_step - step) / (last_step - 50)


def interpolated(step, last_step):
    return np.interp(step, [0, 49, 50, last_step], [6e-5, 3e-3, 3e-3, 0])


def numbers(folder):
    return sorted(int(path.stem[5:]) for path in Path(folder).glob("ckpt-*.index"))


def readable(path):
    try:
        tf.train.load_checkpoint(path)
    except (tf.errors.OpError, ValueError):
        return False
    return True


def newest(folder):
    paths = [f"{folder}/ckpt-{number}" for number in numbers(folder)]
    return max(filter(readable, paths), key=lambda path: int(path.split("-")[-1]), default=None)


def by_index(folder):
    return f"{folder}/ckpt-{numbers(folder)[-1]}" if numbers(folder) else None


def named(folder):
    return f"{folder}/{Path(folder, 'checkpoint').read_text().split(chr(34))[1]}"


def downwards_from_the_named(folder):
    last = int(named(folder).split("-")[-1])
    paths = [f"{folder}/ckpt-{number}" for number in range(last, 0, -1)]
    return next(filter(readable, paths), None)


def up_to_the_first_torn(folder):
    paths = [f"{folder}/ckpt-{number}" for number in numbers(folder)]
    return [None, *itertools.takewhile(readable, paths)][-1]


def by_time(folder):
    paths = sorted(Path(folder).glob("ckpt-*.index"), key=lambda path: path.stat().st_mtime)
    return [None, *filter(readable, [str(path)[:-6] for path in paths])][-1]


ATTEMPTS = {
    "a_run-warm-up": Attempts(
        right=(
            lambda step, last_step: np.float32(warm_up(step, last_step)),
            lambda *given: tf.constant(warm_up(*given), tf.float32),
            lambda *given: np.float32(interpolated(*given)),
        ),
        wrong=(
            (warm_up, "np.float32"),
            (lambda *given: tf.constant(warm_up(*given), tf.float64), "weights are float32"),
            (lambda step, last: np.float32(3e-3 * step / 49 if step < 50 else warm_up(step, last)), "Step 0"),
            (lambda step, last: np.float32(3e-3 * (1 - step / last)), "1,000"),
        ),
    ),
    "a_run-newest": Attempts(
        right=(
            newest,
            lambda folder: newest(folder) and Path(os.path.relpath(newest(folder))),
            lambda folder: newest(folder) and newest(folder).replace("/ckpt", "//ckpt"),
        ),
        wrong=(
            (tf.train.latest_checkpoint, "asks the file"),
            (downwards_from_the_named, "highest number"),
            (up_to_the_first_torn, "highest number"),
            (by_time, "highest number"),
            (lambda folder: by_index(folder) and next(filter(readable, [by_index(folder)]), None), "`None`"),
            (lambda folder: max(numbers(folder), default=None), "a path without an ending"),
            (lambda folder: newest(folder) and newest(folder) + ".index", "a path without an ending"),
        ),
    ),
}
