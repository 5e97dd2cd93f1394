"""Attempts at the exercises of lesson 05."""

import numpy as np

from course_lib.specs.layout import LayoutSpec
from course_lib.specs.mesh import UNSHARDED, MeshSpec
from course_lib.specs.plan import Plan, data_parallel, model_parallel, replicated, spatial_parallel
from tests.lessons.attempts import Attempts

MESH = MeshSpec([("batch", 2), ("model", 4)])
ENTRIES = {
    "W1": [UNSHARDED, "model"],
    "b1": ["model"],
    "y1": ["batch", "model"],
    "W2": ["model", UNSHARDED],
    "b2": [UNSHARDED],
    "y2": ["batch", UNSHARDED],
}


def layouts(mesh=MESH, **changed):
    return {name: LayoutSpec(entries, mesh) for name, entries in {**ENTRIES, **changed}.items()}


def by_features(batch, feature):
    mesh = MeshSpec([("batch", batch), ("feature", feature)])
    return Plan("mine", mesh, {"batch": "batch", "features": "feature"})


def over_x(*axes):
    return Plan("mine", MeshSpec([("x", 8)]), dict.fromkeys(axes, "x"))


def multiply(x_parts, weight_parts, mesh, *, over="feature", of_group=sum):
    components = [x @ weight for x, weight in zip(x_parts, weight_parts, strict=True)]
    for group in mesh.groups(over) if over else ():
        total = of_group([components[device_id] for device_id in group])
        for device_id in group:
            components[device_id] = total
    return components


def over_all(x_parts, weight_parts, mesh):
    return [sum(multiply(x_parts, weight_parts, mesh, over=""))] * mesh.size


def over_batch(x_parts, weight_parts, mesh):
    return multiply(x_parts, weight_parts, mesh, over="batch" if "batch" in mesh.names else "")


def to_the_first_of_a_group(x_parts, weight_parts, mesh):
    components = multiply(x_parts, weight_parts, mesh, over="")
    for group in mesh.groups("feature"):
        components[group[0]] = sum(components[device_id] for device_id in group)
    return components


def restore(components, before, after):
    whole = np.empty(before.global_shape, components[0].dtype)
    for device_id, component in enumerate(components):
        whole[before.shards[device_id]] = component
    return [whole[after.shards[device_id]] for device_id in range(after.mesh.size)]


def in_numpys_own_type(components, before, after):
    return [np.asarray(part, float) for part in restore(components, before, after)]


def of_the_first_component(components, before, after):
    whole = np.zeros(before.global_shape, components[0].dtype)
    whole[before.shards[0]] = components[0]
    return after.split(whole)


def added(components, before, after):
    whole = np.zeros(before.global_shape, components[0].dtype)
    for device_id, component in enumerate(components):
        whole[before.shards[device_id]] += component
    return after.split(whole)


ATTEMPTS = {
    "05-layouts": Attempts(
        right=(dict(reversed(layouts().items())),),
        wrong=(
            (layouts(W1=["model", UNSHARDED]), "inputs first"),
            (layouts(W1=["batch", "model"]), "inputs first"),
            (layouts(b1=[UNSHARDED]), "added to `x W1`"),
            (layouts(y1=["batch", UNSHARDED]), "its columns are `hidden`"),
            (layouts(W2=[UNSHARDED, UNSHARDED]), "sums over `hidden`"),
            (layouts(b2=["model"]), "nothing splits `second`"),
            (layouts(y2=[UNSHARDED, UNSHARDED]), "rows of `y2`"),
            (layouts(y1=["batch"]), "2 axes"),
            ({"W1": LayoutSpec([UNSHARDED, "model"], MESH)}, "b1"),
            (layouts(MeshSpec([("batch", 4), ("model", 2)])), "Use `mesh`"),
        ),
    ),
    "05-plan": Attempts(
        right=(Plan("any", MeshSpec([("x", 4), ("y", 2)]), {"batch": "y", "features": "x"}),),
        wrong=(
            (data_parallel(8), "614,400 of reviews and 231,368 of variables"),
            (model_parallel(4, 2), "1,228,800 of reviews and 115,688 of variables"),
            (spatial_parallel(), "reviews can still take fewer bytes"),
            (by_features(4, 2), "variables have to become smaller"),
            (over_x("features"), "The most goes to `x W1: all-reduce over x"),
            (replicated(8), "4,915,200 of reviews and 231,368"),
            (by_features(4, 4), "There is no device"),
            (over_x("features", "hidden"), "two axes"),
            (over_x("words"), "lacks"),
            ({"batch": "batch"}, "Answer with a plan"),
        ),
    ),
    "05-product": Attempts(
        right=(lambda *inputs: np.array(multiply(*inputs)),),
        wrong=(
            (lambda *inputs: multiply(*inputs, over=""), "still partial sums"),
            (over_all, "over all devices"),
            (over_batch, "along `batch`"),
            (
                lambda *inputs: multiply(*inputs, of_group=lambda parts: sum(parts) / len(parts)),
                "`np.matmul`",
            ),
            (to_the_first_of_a_group, "`np.matmul`"),
            (lambda x_parts, weight_parts, mesh: x_parts @ weight_parts, "fails for"),
            (lambda *inputs: dict(enumerate(multiply(*inputs))), "`np.matmul`"),
            (lambda *inputs: multiply(*inputs)[:-1], "`np.matmul`"),
            (lambda *inputs: None, "return"),
            (0.5, "function"),
        ),
    ),
    "05-restore": Attempts(
        right=(
            restore,
            lambda components, before, after: np.array(after.split(before.assemble(components))),
        ),
        wrong=(
            (lambda components, before, after: components, "`after.shards`"),
            (lambda *inputs: [inputs[1].assemble(inputs[0])] * inputs[2].mesh.size, "every device the whole"),
            (added, "counts replicas"),
            (of_the_first_component, "`after.shards`"),
            (in_numpys_own_type, "of the type `float64`"),
            (lambda *inputs: [part.astype("float16") for part in restore(*inputs)], "`after.shards`"),
            (lambda *inputs: iter(restore(*inputs)), "`after.shards`"),
            (lambda *inputs: None, "return"),
            ([[0, 1], [2, 3]], "function"),
        ),
    ),
}
