"""Keras 2 models on a mesh: names, layouts and bytes are those of the real variables."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import course_lib
from course_lib import UNSHARDED, CourseError, LayoutSpec, MeshSpec
from course_lib.dtensor import create_mesh, fetch_layout, pack, to_layout, to_numpy

tf = course_lib.start_tensorflow()
import tf_keras  # noqa: E402

from lessons.lesson_08_keras.keras_layouts import (  # noqa: E402
    LayoutMap,
    bytes_on_devices,
    made_with,
    names_of,
    patterns_of,
    shardings,
)
from lessons.lesson_08_keras.layout_patterns import LayoutPatterns  # noqa: E402

MESH = MeshSpec([("batch", 2), ("model", 2)])
REAL = create_mesh(MESH)
WHOLE = LayoutSpec([UNSHARDED, UNSHARDED], MESH)
COLUMNS, ROWS = LayoutSpec([UNSHARDED, "model"], MESH), LayoutSpec(["model", UNSHARDED], MESH)
PATTERNS = {"hidden.kernel": COLUMNS, "logits.k": ROWS}
FEATURES, HIDDEN, CLASSES = 6, 4, 2


def dense():
    return tf_keras.layers.Dense(HIDDEN, name="hidden"), tf_keras.layers.Dense(CLASSES, name="logits")


def sequential():
    return tf_keras.Sequential([tf_keras.Input((FEATURES,)), *dense()])


def functional():
    inputs, (hidden, logits) = tf_keras.Input((FEATURES,)), dense()
    return tf_keras.Model(inputs, logits(hidden(inputs)))


class Subclassed(tf_keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden, self.logits = tf_keras.layers.Dense(HIDDEN), tf_keras.layers.Dense(CLASSES)

    def call(self, inputs):
        return self.logits(self.hidden(inputs))


def real_map(patterns, mesh=REAL):
    layout_map = LayoutMap(mesh=mesh)
    for pattern, layout in patterns.items():
        layout_map[pattern] = to_layout(layout, REAL)
    return layout_map


@pytest.fixture(autouse=True)
def seeded():
    tf_keras.utils.set_random_seed(0)


names = st.lists(st.sampled_from(["hidden", "logits", "kernel", "bias", "."]), min_size=1, max_size=4).map(
    "".join
)
patterns = st.one_of(names, st.sampled_from([".*kernel", "(hidden|logits)", "hid+en", "", "x*"]))


@settings(deadline=None)
@given(st.lists(patterns, unique=True, max_size=4), st.lists(names, min_size=1, max_size=4))
def test_the_patterns_find_what_kerass_layout_map_finds(given_patterns, wanted):
    layouts = [COLUMNS, ROWS, WHOLE, LayoutSpec(["batch", "model"], MESH)]
    ours = LayoutPatterns(dict(zip(given_patterns, layouts, strict=False)), MESH)
    theirs = real_map(ours.layouts)
    for name in wanted:
        found, pattern = theirs[name], ours.pattern_of(name)
        assert (found is None) is (pattern is None)
        assert found is None or tuple(found.sharding_specs) == ours.layouts[pattern].sharding_specs


@pytest.mark.parametrize("make", [sequential, functional, Subclassed])
def test_a_model_has_the_layouts_that_its_names_get(make):
    rows = pack(np.ones((4, FEATURES), "float32"), LayoutSpec(["batch", UNSHARDED], MESH), REAL)
    model = made_with(real_map(PATTERNS), make, rows)
    found = [str(fetch_layout(variable)) for variable in model.weights]
    assert found == ["[unsharded, model]", "[unsharded]", "[model, unsharded]", "[unsharded]"]
    assert [sharding.local_shape for sharding in shardings(model.weights)] == [(6, 2), (4,), (2, 2), (2,)]
    assert bytes_on_devices(model.weights) == [4 * (6 * 2 + 4 + 2 * 2 + 2)] * 4
    values = [to_numpy(variable) for variable in model.weights]
    expected = (np.ones((4, FEATURES)) @ values[0] + values[1]) @ values[2] + values[3]
    np.testing.assert_allclose(to_numpy(tf.function(model)(rows)), expected, atol=1e-5)


class Recording(LayoutMap):
    """A map that keeps the names that it is asked for."""

    def __getitem__(self, name):
        self.asked.add(name)
        return None if name else super().__getitem__(name)


class OfLists(tf_keras.Model):
    def __init__(self):
        super().__init__()
        self.blocks = [tf_keras.layers.Dense(4), tf_keras.layers.Dense(4)]

    def call(self, inputs):
        return self.blocks[0](inputs) + self.blocks[1](inputs)


def deferred():
    return tf_keras.Sequential(dense())


def with_normalisation():
    layers = tf_keras.layers.Dense(4), tf_keras.layers.BatchNormalization(), tf_keras.layers.Dense(2)
    return tf_keras.Sequential([tf_keras.Input((FEATURES,)), *layers])


@pytest.mark.parametrize(
    "make",
    [sequential, functional, Subclassed, OfLists, deferred, with_normalisation],
    ids=lambda make: make.__name__,
)
def test_the_names_are_those_that_keras_asks_for(make):
    recording = Recording(mesh=REAL)
    recording.asked = set()
    with recording.scope():
        model = make()
    model(pack(np.ones((4, FEATURES), "float32"), LayoutSpec(["batch", UNSHARDED], MESH), REAL))
    assert set(names_of(model)) == recording.asked
    assert {id(variable) for variable in names_of(model).values()} == {id(each) for each in model.weights}


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: made_with(real_map({"hiden.kernel": COLUMNS}), sequential), "'hiden.kernel'"),
        (lambda: made_with(real_map({".*kernel": WHOLE, "logits.k": ROWS}), sequential), "'logits.k'"),
        (lambda: patterns_of(real_map(PATTERNS, mesh=None)), "has no mesh"),
        (lambda: patterns_of(real_map(PATTERNS, mesh=create_mesh(MeshSpec([("x", 4)])))), "'hidden.kernel'"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(make, named):
    with pytest.raises(CourseError, match=re.escape(named)):
        make()
