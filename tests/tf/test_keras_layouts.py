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
    layouts_of,
    names_of,
    pattern_of,
    require_matched,
    shardings,
)

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


def made_with(layout_map, make):
    with layout_map.scope():
        return make()


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
    ours = dict(zip(given_patterns, layouts, strict=False))
    theirs = real_map(ours)
    for name in wanted:
        found, pattern = theirs[name], pattern_of(name, ours.keys())
        assert (found is None) is (pattern is None)
        assert found is None or tuple(found.sharding_specs) == ours[pattern].sharding_specs


@pytest.mark.parametrize("make", [sequential, functional, Subclassed])
def test_a_model_has_the_layouts_that_its_names_get(make):
    rows = pack(np.ones((4, FEATURES), "float32"), LayoutSpec(["batch", UNSHARDED], MESH), REAL)
    layout_map = real_map(PATTERNS)
    model = made_with(layout_map, make)
    model(rows)
    require_matched(layout_map, model)
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
    model = made_with(recording, make)
    model(pack(np.ones((4, FEATURES), "float32"), LayoutSpec(["batch", UNSHARDED], MESH), REAL))
    assert set(names_of(model)) == recording.asked
    assert {id(variable) for variable in names_of(model).values()} == {id(each) for each in model.weights}


@pytest.mark.parametrize(
    ("patterns", "mesh", "named"),
    [
        ({"hiden.kernel": COLUMNS}, REAL, "'hiden.kernel'"),
        ({".*kernel": WHOLE, "logits.k": ROWS}, REAL, "'logits.k'"),
        (PATTERNS, None, "has no mesh"),
        (PATTERNS, create_mesh(MeshSpec([("x", 4)])), "'hidden.kernel'"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(patterns, mesh, named):
    layout_map, model = real_map(patterns, mesh), sequential()

    with pytest.raises(CourseError, match=re.escape(named)):
        layouts_of(layout_map) and require_matched(layout_map, model)
