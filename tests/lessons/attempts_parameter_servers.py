"""Attempts at the exercise of `parameter_servers`."""

import numpy as np
import tensorflow as tf

from tests.lessons.attempts import Attempts


def in_order(coordinator, train_step, iterator, num_steps, save):
    """Fetching waits, too."""
    steps = [coordinator.schedule(train_step, args=(iterator,)) for _ in range(num_steps)]
    losses = coordinator.fetch(steps)
    save()
    return np.mean(losses)


def polled(coordinator, train_step, iterator, num_steps, save):
    steps = [coordinator.schedule(fn=train_step, args=[iterator]) for _ in range(num_steps)]
    while not coordinator.done():
        pass
    save()
    return tf.reduce_mean([step.fetch() for step in steps])


def asks_once(coordinator, train_step, iterator, num_steps, save):
    steps = [coordinator.schedule(train_step, args=(iterator,)) for _ in range(num_steps)]
    coordinator.done()
    save()
    return np.mean(coordinator.fetch(steps))


def without_a_comma(coordinator, train_step, iterator, num_steps, save):
    coordinator.schedule(train_step, args=(iterator))


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


ATTEMPTS = {
    "parameter_servers-epoch": Attempts(
        right=(in_order, polled),
        wrong=(
            (one_at_a_time, "only one worker is ever busy"),
            (waits_for_the_last, "wait for them, save once"),
            (asks_once, "wait for them, save once"),
            (without_a_comma, "A step needs the iterator"),
            (wraps_it, "its arguments apart"),
            (calls_it, "its arguments apart"),
            (forgets_the_iterator, "A step needs the iterator"),
            (adds_up, "fetch the losses"),
        ),
    ),
}
