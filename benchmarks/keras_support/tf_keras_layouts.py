"""What tf_keras (Keras 2) distributes over eight virtual devices with DTensor's layouts.

    .venv/bin/python benchmarks/keras_support/tf_keras_layouts.py fit

It needs tensorflow and tf-keras, and nothing of the course. Each case prints whether the variables are
distributed, and how far its numbers are from those of the same layers without layouts, on one device.

Source: https://www.tensorflow.org/tutorials/distribute/dtensor_keras_tutorial
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from example import (
    BATCH_SIZE,
    CLASSES,
    FEATURES,
    HIDDEN,
    LEARNING_RATE,
    answer,
    batches,
    difference,
    examples,
    first_values,
)

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf  # noqa: E402
import tf_keras  # noqa: E402
from tensorflow.experimental import dtensor  # noqa: E402

NUM_DEVICES, DIMS = 8, {"batch": 4, "model": 2}
WHOLE = dtensor.UNSHARDED
RIGHT = {
    "hidden.kernel": (WHOLE, "model"),
    "hidden.bias": ("model",),
    "logits.kernel": ("model", WHOLE),
}
MISSPELT = {"hiden.kernel": (WHOLE, "model")}
Dense = tf_keras.layers.Dense
