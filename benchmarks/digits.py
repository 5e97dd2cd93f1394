"""Handwritten digits: what the plain program `from_scratch` defines, trained on eight devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.programs import program
from benchmarks.records import SEEDS, circumstances, run_of, seeds_told
from course_lib.data.images import Images, load_mnist
from course_lib.runtime import start_tensorflow

tf = start_tensorflow()

BATCH_SIZE, EPOCHS, LAYERS = 128, 3, (784, 700, 500, 10)
DETAILS = {
    "plan": "data_parallel(8)",
    "model": "-".join(map(str, LAYERS)),
    "batch_size": str(BATCH_SIZE),
    "last_batch": "drop",
    "optimizer": "Adam(learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-07)",
}


def measure(source: str, num_train: int, num_test: int) -> dict[str, Any]:
    """Returns what each seed gives with so many digits; those that do not fill a batch are left out."""
    images = load_mnist(source, num_train=num_train, num_test=num_test)
    how = circumstances("mnist 3.0.1", source, images, **DETAILS, seeds=seeds_told())
    return {"how": how, "runs": {"adam": run_of([[*_records(images, seed)] for seed in SEEDS], BATCH_SIZE)}}


def _records(images: Images, seed: int) -> Iterator[dict[str, Any]]:
    from_scratch = program("from_scratch")
    layouts = from_scratch.layouts_on([("batch", 8)], {"batch": "batch"})
    values = from_scratch.make_values(LAYERS, seed)
    model, adam = from_scratch.Model(values, layouts), from_scratch.Adam(values, layouts)

    @tf.function
    def evaluate(x: Any, y: Any) -> tuple[Any, Any]:
        logits = from_scratch.logits_of(model.weights, x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        hits = tf.cast(tf.argmax(logits, axis=1) == y, tf.float32)
        return tf.reduce_mean(losses), tf.reduce_mean(hits)

    def split(rows: Any, of: Any) -> list[Any]:
        pairs = ((of.features, "x"), (of.labels, "y"))
        return [from_scratch.place(array[rows], layouts[name]) for array, name in pairs]

    per_epoch = len(images.train) // BATCH_SIZE
    for epoch in range(1, EPOCHS + 1):
        order = np.random.default_rng([seed, epoch]).permutation(len(images.train))
        for at in range(per_epoch):
            batch = split(order[BATCH_SIZE * at : BATCH_SIZE * (at + 1)], images.train)
            loss, accuracy = map(float, from_scratch.train_step(model, adam, *batch)[:2])
            step = per_epoch * (epoch - 1) + at + 1
            record = {"step": step, "epoch": epoch, "loss": loss, "accuracy": accuracy}
            yield record
        loss, accuracy = map(float, evaluate(*split(slice(None), images.test)))
        yield {**record, "test_loss": loss, "test_accuracy": accuracy}
