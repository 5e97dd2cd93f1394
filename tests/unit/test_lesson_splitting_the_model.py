"""What `splitting_the_model` says of bytes and times, counted without TensorFlow."""

import pytest

from course_lib.specs.collectives import Kind
from course_lib.specs.machines import Link, ring_seconds
from lessons.layouts.classifier_step import classifier_step
from tests.code_choices import MODEL_PARALLEL

SIZES = {"batch": 64, "features": 1200, "hidden": 48, "classes": 2}
INSIDE, BETWEEN = Link(240e9, 3.4e-6, ""), Link(25e9, 14e-6, "")


@pytest.mark.parametrize("hidden", [48, 50_000])
def test_what_goes_over_model_does_not_depend_on_the_matrix_that_is_cut(hidden):
    found = [event.collective for event in classifier_step(MODEL_PARALLEL, {**SIZES, "hidden": hidden})]
    assert [each.payload_bytes for each in found if each and each.mesh_dims == ("model",)] == [128]


def test_the_times_of_both_ways_to_lay_the_mesh_on_two_nodes():
    activations, gradients = 16_384 * 8_192 * 4, 2 * 8_192 * 32_768 * 32 / 8 * 4

    def seconds(model, batch):
        return (
            round(64 * ring_seconds(Kind.ALL_REDUCE, 8, activations, model), 2),
            round(ring_seconds(Kind.ALL_REDUCE, 2, gradients, batch), 2),
        )

    assert seconds(INSIDE, BETWEEN) == (0.25, 0.34)
    assert seconds(BETWEEN, INSIDE) == (2.42, 0.04)
    assert round(16 * 2 * 8_192 * 32_768 * 32 / 1e9) == 275  # weights, gradients, two averages
