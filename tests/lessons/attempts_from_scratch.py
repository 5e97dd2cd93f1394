"""Attempts at the exercises of `from_scratch`."""

import numpy as np

from tests.lessons.attempts import Attempts


def adam(move_of):
    """Returns Adam with a move computed from step, mean and square."""

    def answer(variable, gradients, learning_rate):
        mean = square = 0
        for step, gradient in enumerate(gradients, 1):
            mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
            variable = variable - learning_rate * move_of(step, mean, square)
        return variable

    return answer


def corrected(step, mean, square):
    return mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-7 / np.sqrt(1 - 0.999**step))


def momentum(move):
    """Returns a function that computes all new values of variables and velocities, then writes them."""

    def answer(variables, velocities, gradients, learning_rate):
        new = {
            name: move(variables[name], velocities[name], learning_rate * gradients[name])
            for name in variables
        }
        for name, (variable, velocity) in new.items():
            variables[name].assign(variable)
            velocities[name].assign(velocity)

    return answer


def written_then_read(variables, velocities, gradients, learning_rate):
    for name, variable in variables.items():
        velocities[name].assign(0.9 * velocities[name] - learning_rate * gradients[name])
        variable.assign_add(velocities[name])


def not_written(variables, velocities, gradients, learning_rate):
    for name in variables:
        velocities[name] = 0.9 * velocities[name] - learning_rate * gradients[name]
        variables[name] = variables[name] + velocities[name]


ATTEMPTS = {
    "from_scratch-adam": Attempts(
        right=(adam(corrected),),
        wrong=((adam(lambda step, mean, square: mean / (np.sqrt(square) + 1e-7)), "begin at zero"),),
    ),
    "from_scratch-momentum": Attempts(
        right=(momentum(lambda w, v, step: (w + (0.9 * v - step), 0.9 * v - step)),),
        wrong=(
            (written_then_read, "on eight"),
            (not_written, "Nothing was written"),
            (momentum(lambda w, v, step: (w + 0.9 * v + step, 0.9 * v + step)), 'variables["'),
        ),
    ),
}
