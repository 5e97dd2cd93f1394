"""Attempts at the exercises of `faster`."""

from fractions import Fraction

import course_lib
from tests.lessons.attempts import Attempts

tf = course_lib.start_tensorflow()


def by_fractions(one, eight):
    (few, many), slopes, fixed = sorted(one), [], []
    for times in (one, eight):
        start, end = Fraction(times[few]), Fraction(times[many])
        slopes.append((end - start) / (many - few))
        fixed.append(start - few * slopes[-1])
    if slopes[0] <= slopes[1]:
        return None
    return (fixed[1] - fixed[0]) / (slopes[0] - slopes[1])


def never_none(one, eight):
    (few, many) = sorted(one)
    slopes = [(times[many] - times[few]) / (many - few) for times in (one, eight)]
    return (eight[few] - one[few]) / (slopes[0] - slopes[1]) + few


def decoded(records):
    numbers = tf.io.decode_raw(records, tf.uint8)
    return tf.cast(numbers[:, :784], tf.float32) / 255.0, tf.cast(numbers[:, 784], tf.int64)


def stacks(files, batch_size, steps, *, drop=True):
    dataset = tf.data.FixedLengthRecordDataset(files, 785).batch(batch_size, drop_remainder=drop).map(decoded)
    return dataset.batch(steps, drop_remainder=drop)


def first_labels(images, labels):
    return images, tf.zeros_like(labels) + labels[0, 0]


def one_by_one(files, batch_size, steps):
    def decode(record):
        images, labels = decoded(tf.expand_dims(record, 0))
        return images[0], labels[0]

    dataset = tf.data.Dataset.from_tensor_slices(files).flat_map(
        lambda file: tf.data.FixedLengthRecordDataset(file, 785)
    )
    return dataset.map(decode).batch(batch_size, True).batch(steps, True).prefetch(1)


ATTEMPTS = {
    "faster-break-even": Attempts(
        right=(
            by_fractions,
            lambda one, eight: None if 64 in one and one[64] == 1 else never_none(one, eight),
        ),
        wrong=(
            (never_none, "return None"),
            (lambda *times: found if (found := never_none(*times)) < 900 else None, "gives `None`"),
            (
                lambda one, eight: None if eight.get(128) == 6.5 else never_none(one, eight),
                "as long on eight",
            ),
            (lambda one, eight: max(one), "difference of the two times"),
        ),
    ),
    "faster-pipeline": Attempts(
        right=(one_by_one, lambda *given: stacks(*given).prefetch(tf.data.AUTOTUNE)),
        wrong=(
            (lambda *given: stacks(*given, drop=False), "elements does not match"),
            (lambda *given: stacks(*given).concatenate(stacks(*given).take(1)), "drop_remainder"),
            (lambda files, batch_size, steps: stacks(files, steps, batch_size), "stacks batches"),
            (lambda *given: stacks(*given).map(lambda x, y: (x, tf.cast(y, tf.int32))), "tf.int64"),
            (lambda *given: stacks(*given).map(first_labels), "labels"),
            (lambda *given: stacks(*given).skip(1).concatenate(stacks(*given).take(1)), "nothing shuffle"),
            (lambda *given: list(stacks(*given)), "Return a dataset"),
            (lambda *given: stacks(*given).repeat(), "never ends"),
            (lambda *given: tf.data.Dataset.from_tensors(next(iter(stacks(*given)))).repeat(2), "all files"),
        ),
    ),
}
