"""The forms in which a reader may give one and the same answer, without TensorFlow's."""

import copy
import functools
import itertools
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np

from course_lib.exercises.answers import plain
from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import MeshSpec
from course_lib.specs.sharding import Sharding


class Shape:
    """Behaves as a TensorShape."""

    def __init__(self, lengths):
        self.lengths = lengths

    def as_list(self):
        return list(self.lengths)


class Callable:
    """A function as an object with methods."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *inputs):
        return self.function(*inputs)

    def method(self, *inputs):
        return self.function(*inputs)


def forms(right):
    """Returns answers that say the same as `right`."""
    value = plain(right)
    for kinds, made in _FORMS:
        if isinstance(value, kinds):
            return [right, *made(value)]
    return [right, *_functions(right)] if callable(value) else [right]


def _of_truth(value):
    return [np.bool_(value), np.array(value)]


def _of_number(value):
    text = repr(value)
    made = [float(value), np.float64(value), np.float32(value), np.longdouble(value), np.array(value)]
    made += [np.array(value, np.float32), Fraction(text), Decimal(text), value * (1 + 1e-12)]
    if isinstance(value, int):
        made += [np.int32(value), np.int64(value), np.array(value, np.int16 if value < 2**15 else np.int64)]
    return [*made, value / 3 + value / 3 + value / 3]


def _of_tuple(value):
    made = [list(value), tuple(value), [*map(_as_lists, value)]]
    if all(isinstance(part, int) for part in value):
        made.append(Shape(value))
    if _regular(value):
        made += [np.array(value), np.array(value, np.float64), [np.array(part) for part in value]]
    parts = zip(*(itertools.islice(itertools.cycle(forms(part)), 10) for part in value), strict=True)
    return made + [kind(each) for each, kind in zip(parts, itertools.cycle((list, tuple)))]


def _as_lists(value):
    return [*map(_as_lists, value)] if isinstance(value, tuple) else value


def _regular(value):
    try:
        return np.asarray(value).dtype.kind in "iuf"
    except ValueError:
        return False


def _of_dictionary(value):
    parts = {name: itertools.islice(itertools.cycle(forms(part)), 10) for name, part in value.items()}
    made = [dict(zip(parts, each, strict=True)) for each in zip(*parts.values(), strict=True)]
    return [*made, dict(reversed(value.items()))]


def _of_mesh(mesh):
    dims = [
        mesh.dims,
        list(mesh.dims),
        map(list, mesh.dims),
        (dim for dim in mesh.dims),
        dict(mesh.dims).items(),
        zip(mesh.names, mesh.sizes, strict=True),
        zip(mesh.names, np.array(mesh.sizes), strict=True),
        [(name, np.int64(size)) for name, size in mesh.dims],
    ]
    return [*map(MeshSpec, dims), copy.deepcopy(mesh), pickle.loads(pickle.dumps(mesh))]


def _of_layout(layout):
    entries = [list, tuple, iter, np.array, lambda specs: (name for name in specs)]
    made = [LayoutSpec(kind(layout.sharding_specs), layout.mesh) for kind in entries]
    made += [LayoutSpec(layout.sharding_specs, mesh) for mesh in _of_mesh(layout.mesh)[:4]]
    return [*made, copy.deepcopy(layout), pickle.loads(pickle.dumps(layout))]


def _of_sharding(sharding):
    made = [layout.of(sharding.global_shape) for layout in _of_layout(sharding.layout)]
    return [*made, sharding.layout.of(list(sharding.global_shape), element_bytes=4)]


def _functions(function):
    def returning(number):
        return lambda *inputs: (made := forms(function(*inputs)))[number % len(made)]

    @functools.wraps(function)
    def changing_its_inputs(*inputs):
        result = function(*inputs)
        for each in inputs:
            if isinstance(each, np.ndarray):
                each[...] = -1
        print("a line of no use")
        return result

    made = [functools.partial(function), changing_its_inputs]
    return [*made, Callable(function), Callable(function).method, *map(returning, range(12))]


_FORMS = [
    (bool, _of_truth),
    ((int, float), _of_number),
    (tuple, _of_tuple),
    (dict, _of_dictionary),
    (MeshSpec, _of_mesh),
    (LayoutSpec, _of_layout),
    (Sharding, _of_sharding),
]
