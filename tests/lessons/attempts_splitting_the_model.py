"""Attempts at the exercises of `splitting_the_model`."""

import course_lib
from tests.lessons.attempts import Attempts

tf = course_lib.start_tensorflow()
from tensorflow.experimental import dtensor  # noqa: E402

WHOLE = dtensor.UNSHARDED
WIDE, NARROW = (
    dtensor.create_mesh(dims, device_type="CPU")
    for dims in ([("batch", 2), ("model", 4)], [("batch", 4), ("model", 2)])
)
SPECS = {
    "W1": [WHOLE, "model"],
    "b1": ["model"],
    "y1": ["batch", "model"],
    "W2": ["model", WHOLE],
    "b2": [WHOLE],
    "y2": ["batch", WHOLE],
}


def layouts(mesh=WIDE, **changed):
    return {name: dtensor.Layout(spec, mesh) for name, spec in {**SPECS, **changed}.items()}


def multiply(x_parts, weight_parts, mesh, *, over="feature", of_group=tf.add_n):
    products = [tf.matmul(x, W1) for x, W1 in zip(x_parts, weight_parts, strict=True)]
    places = mesh.local_device_locations()

    def group(place):
        others = [{**at, over: place[over]} == place for at in places]
        return [each for each, beside in zip(products, others, strict=True) if beside]

    return [of_group(group(place)) for place in places]


def own_parts(x_parts, weight_parts, mesh):
    return [x @ W1 for x, W1 in zip(x_parts, weight_parts, strict=True)]


ATTEMPTS = {
    "splitting_the_model-layouts": Attempts(
        right=(dict(reversed(layouts().items())),),
        wrong=(
            (layouts(W1=["model", WHOLE]), "then `hidden`"),
            (layouts(b1=[WHOLE]), "added to `x @ W1`"),
            (layouts(y1=["batch", WHOLE]), "columns of `W1`"),
            (layouts(W2=[WHOLE, WHOLE]), "sums over `hidden`"),
            (layouts(y2=[WHOLE, WHOLE]), "rows of `y2`"),
            (layouts(y1=["batch"]), "2 axes"),
            (layouts(NARROW), "Use the mesh"),
        ),
    ),
    "splitting_the_model-product": Attempts(
        right=(multiply, lambda *inputs: [part.numpy() for part in multiply(*inputs)]),
        wrong=(
            (own_parts, "still partial sums"),
            (lambda *inputs: multiply(*inputs, of_group=lambda parts: sum(parts) / len(parts)), "`x @ W1`"),
        ),
    ),
}
