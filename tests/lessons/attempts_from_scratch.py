"""Attempts at the exercises of `from_scratch`."""

import numpy as np

from tests.course import from_lesson
from tests.lessons.attempts import Attempts

right_momentum = from_lesson("from_scratch.checks", "right_momentum")


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


def of_keras(variable, gradients, learning_rate):
    import tensorflow as tf

    optimizer = tf.keras.optimizers.Adam(learning_rate)
    held = tf.Variable(variable)
    for gradient in gradients:
        optimizer.apply_gradients([(tf.constant(gradient), held)])
    return held.numpy()


def in_tensorflow(variable, gradients, learning_rate):
    import tensorflow as tf

    return tf.constant(in_place(variable, gradients, learning_rate))


def in_place(variable, gradients, learning_rate):
    m, v = np.zeros(variable.shape), np.zeros(variable.shape)
    for t in range(len(gradients)):
        m += 0.1 * (gradients[t] - m)
        v += 0.001 * (gradients[t] ** 2 - v)
        variable -= learning_rate * np.sqrt(1 - 0.999 ** (t + 1)) / (1 - 0.9 ** (t + 1)) * m / (v**0.5 + 1e-7)
    return variable


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
        right=(adam(corrected), in_place),
        wrong=(
            (adam(lambda step, mean, square: mean / (np.sqrt(square) + 1e-7)), "begin at zero"),
            (adam(lambda step, mean, square: corrected(1, mean, square)), "program B"),
            (of_keras, "the Adam of Keras"),
            (in_tensorflow, "a tensor"),
        ),
    ),
    "from_scratch-momentum": Attempts(
        right=(
            momentum(lambda w, v, step: (w + (0.9 * v - step), 0.9 * v - step)),
            right_momentum,
        ),
        wrong=(
            (written_then_read, "on eight"),
            (not_written, "Nothing was written"),
            (momentum(lambda w, v, step: (w, 0.9 * v - step)), "weights do not move"),
            (momentum(lambda w, v, step: (w + 0.8 * v - step, 0.8 * v - step)), "Hold your lines"),
        ),
    ),
}
