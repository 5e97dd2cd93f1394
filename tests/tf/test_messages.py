"""The last line of real errors of TensorFlow, DTensor and Keras, stated by hand; and their numbers, shown."""

import keras
import numpy as np
import pytest

import course_lib
from course_lib import about, last_line

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

MESH = dtensor.create_mesh([("batch", 2), ("model", 4)], devices=[f"CPU:{device}" for device in range(8)])


def placed(shape, *specs):
    return dtensor.copy_to_mesh(tf.ones(shape), dtensor.Layout(specs, MESH))


@tf.function
def add(left, right):
    return left + right


@tf.function(input_signature=[tf.TensorSpec(None)] * 2)
def multiply(left, right):
    return left @ right


@tf.function
def refuse(x):
    return refused_by_python(x)


def refused_by_python(x):
    raise KeyError("no such plan")


def wrong_input_of_keras():
    keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2, name="dense")])(tf.ones((2, 5)))


def wrong_index_in_keras():
    model = keras.Sequential([keras.layers.Embedding(4, 2)])
    model.compile("sgd", "mse")
    model.fit(np.full((4, 3), 9), np.ones((4, 3, 2)), verbose=0)


LINES = {
    "traced": (lambda: add(tf.ones(3), tf.ones(4)), "ValueError: Dimensions must be equal, but are 3 and 4"),
    "in a function": (
        lambda: multiply(tf.ones((2, 3)), tf.ones((4, 2))),
        "InvalidArgumentError: Matrix size-incompatible: In[0]: [2,3], In[1]: [4,2]",
    ),
    "component id": (
        lambda: tf.function(lambda x: tf.roll(x, 1, 0))(placed((8, 8), "batch", "model")),
        "UnknownError: 'tf.Roll' op does not implement layout propagation."
        " Please file a feature request to TF DTensor.",
    ),
    "AutoGraph": (lambda: refuse(tf.ones(3)), "KeyError: 'no such plan'"),
    "Keras": (
        wrong_input_of_keras,
        "ValueError: Input 0 with name 'None' of layer 'dense' is incompatible with the layer: expected axis"
        " -1 of input shape to have value 4, but received input with shape (2, 5)",
    ),
    "Keras in a function": (wrong_index_in_keras, "InvalidArgumentError: indices[0,0] = 9 is not in [0, 4)"),
}


@pytest.mark.parametrize("case", LINES)
def test_the_last_line_says_what_is_wrong(case):
    fails, line = LINES[case]
    with pytest.raises(Exception, match=r"\w") as caught:
        fails()
    assert last_line(caught.value) == line


def test_a_number_of_tensorflow_is_shown():
    assert about(tf.constant(0.3), 0, 1) == "≈ 0.30"
    assert about(tf.reduce_mean(placed((8, 8), "batch", "model")), 0, 2) == "≈ 1.0"
