"""Models' declarations: shapes, bytes, initial values and checks follow from axes that are named once."""

import numpy as np
import pytest

from course_lib.models.variables import ONES, RANDOM, ModelSpec, VariableSpec
from course_lib.specs.plan import data_parallel, model_parallel

SPEC = ModelSpec(
    variables={
        "weight": VariableSpec(("features", "hidden"), RANDOM),
        "bias": VariableSpec(("hidden",)),
        "scale": VariableSpec(("hidden",), ONES, trainable=False),
    },
    inputs=("batch", "features"),
    layers=("features", "hidden"),
)
SIZES = {"features": 6, "hidden": 4}


def test_axes_and_tensors_come_from_the_declaration():
    assert SPEC.axes == ("features", "hidden")
    assert SPEC.tensors == {
        "inputs": ("batch", "features"),
        "labels": ("batch",),
        "weight": ("features", "hidden"),
        "bias": ("hidden",),
        "scale": ("hidden",),
    }


def test_a_device_holds_the_bytes_of_its_shards():
    assert SPEC.bytes_on_a_device(SIZES) == {"weight": 96, "bias": 16, "scale": 16}
    assert SPEC.bytes_on_a_device(SIZES, data_parallel(8)) == SPEC.bytes_on_a_device(SIZES)
    halved = {"weight": 48, "bias": 8, "scale": 8}
    assert SPEC.bytes_on_a_device(SIZES, model_parallel(4, 2)) == halved


def test_initial_values_are_zeros_ones_and_draws_in_the_order_of_the_declaration():
    values = SPEC.initial_values(SIZES, 5, "normal")
    expected = np.random.Generator(np.random.Philox(5)).standard_normal((6, 4)).astype(np.float32)
    assert np.array_equal(values["weight"], expected)
    assert np.array_equal(values["bias"], np.zeros(4))
    assert np.array_equal(values["scale"], np.ones(4))
    assert {value.dtype for value in values.values()} == {np.dtype(np.float32)}


def test_the_schemes_have_their_deviations():
    sizes = {"features": 900, "hidden": 300}
    found = {scheme: SPEC.initial_values(sizes, 0, scheme)["weight"] for scheme in ("he", "normal")}
    deviations = {"he": (2 / 900) ** 0.5, "normal": 1.0}
    for scheme, deviation in deviations.items():
        assert found[scheme].std() == pytest.approx(deviation, rel=0.01)


def test_the_sizes_of_the_axes_come_from_the_values():
    assert SPEC.sizes(SPEC.initial_values(SIZES, 0, "he")) == SIZES
