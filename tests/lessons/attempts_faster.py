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


def an_eighth(one, eight):
    few, many = sorted(one)
    slope = (one[many] - one[few]) / (many - few)
    eighth = (eight[many] - eight[few]) / (many - few)
    return (eight[few] - few * eighth - one[few] + few * slope) / (slope * 7 / 8)


def decoded(records, scale=255.0, label=784):
    numbers = tf.io.decode_raw(records, tf.uint8)
    images = numbers[:, :784] if label else numbers[:, 1:]
    return tf.cast(images, tf.float32) / scale, tf.cast(numbers[:, label], tf.int64)


def stacks(files, batch_size, steps, *, drop=True, decode=decoded):
    dataset = tf.data.FixedLengthRecordDataset(files, 785).batch(batch_size, drop_remainder=drop).map(decode)
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
            (an_eighth, "an eighth"),
            (lambda one, eight: max(one), "difference of the two times"),
        ),
    ),
    "faster-pipeline": Attempts(
        right=(one_by_one, lambda *given: stacks(*given).prefetch(tf.data.AUTOTUNE)),
        wrong=(
            (lambda *given: stacks(*given, drop=False), "elements does not match"),
            (lambda *given: stacks(*given).concatenate(stacks(*given).take(1)), "drop_remainder"),
            (lambda files, batch_size, steps: stacks(files, steps, batch_size), "stacks batches"),
            (lambda *given: stacks(*given, decode=lambda each: decoded(each, label=0)), "last byte"),
            (lambda *given: stacks(*given, decode=lambda each: decoded(each, 1.0)), "by 255"),
            (lambda *given: stacks(*given, decode=lambda each: decoded(each, 256.0)), "255 becomes 1"),
            (lambda *given: stacks(*given).map(lambda x, y: (x, tf.cast(y, tf.int32))), "tf.int64"),
            (lambda *given: stacks(*given).map(first_labels), "labels"),
            (lambda *given: stacks(*given).shuffle(2, seed=1), "nothing shuffle"),
            (lambda *given: list(stacks(*given)), "Return a dataset"),
            (lambda *given: stacks(*given).repeat(), "never ends"),
            (lambda *given: tf.data.Dataset.from_tensors(next(iter(stacks(*given)))).repeat(2), "all files"),
        ),
    ),
}
