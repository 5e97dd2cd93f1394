"""The convolutional Keras model of TensorFlow's tutorials on strategies: images of 28x28, ten classes."""

from __future__ import annotations

from typing import Any

from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

IMAGE, CLASSES = (28, 28, 1), 10
_MOST_LAYERS = 4


def convolutional(
    strategy: Any, seed: int = 0, *, filters: tuple[int, int] = (32, 64), hidden: int = 64
) -> Any:
    """Returns the model, made in the strategy's scope; it gives logits.

    Its initial values follow from the seed: the same under every strategy, on every machine. It begins with
    its input, so that its variables are there before the first batch.

    Args:
        strategy: where its variables lie.
        seed: of the initial values.
        filters: the number of filters of the two convolutions.
        hidden: the number of hidden units.

    Source: https://www.tensorflow.org/tutorials/distribute/custom_training (Create the model).
    """
    layers = tf.keras.layers
    with strategy.scope():
        return tf.keras.Sequential(
            [
                tf.keras.Input(IMAGE),
                layers.Conv2D(filters[0], 3, activation="relu", kernel_initializer=_drawn(seed, 0)),
                layers.MaxPooling2D(),
                layers.Conv2D(filters[1], 3, activation="relu", kernel_initializer=_drawn(seed, 1)),
                layers.MaxPooling2D(),
                layers.Flatten(),
                layers.Dense(hidden, activation="relu", kernel_initializer=_drawn(seed, 2)),
                layers.Dense(CLASSES, kernel_initializer=_drawn(seed, 3)),
            ]
        )


def _drawn(seed: int, layer: int) -> Any:
    """Returns Xavier's uniform values, other ones for each layer and seed."""
    return tf.keras.initializers.GlorotUniform((_MOST_LAYERS * seed + layer) % 2**31)
