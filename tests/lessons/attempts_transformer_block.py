"""Attempts at the exercises of `transformer_block`."""

import course_lib
from tests.lessons.attempts import Attempts

tf = course_lib.start_tensorflow()


def by_tensor(equation, splits):
    tensors = [set(tensor) for tensor in equation.replace("->", ",").split(",")]
    axes = set.union(*tensors)
    return tuple(frozenset(splits.get(axis) for axis in axes - own) - {None} for own in tensors)


def by_dimension(equation, splits):
    """Removes what splits the tensor itself, which is the same under every plan that is legal."""
    used = {splits[axis] for axis in equation if axis in splits}
    tensors = equation.replace("->", ",").split(",")
    return [used - {splits[axis] for axis in own if axis in splits} for own in tensors]


def as_values(equation, splits):
    return dict(enumerate(by_tensor(equation, splits))).values()


def forward(equation, splits):
    return [set(), set(), by_tensor(equation, splits)[2]]


def by_the_result_alone(equation, splits):
    first, _second, result = by_tensor(equation, splits)
    return [first, by_tensor(equation[equation.find(",") :], splits)[1], result]


def attention(x, query, key, value, *, root=None):
    q, k, v = (tf.tensordot(x, each, axes=1) for each in (query, key, value))
    q, k, v = (tf.transpose(each, [0, 2, 1, 3]) for each in (q, k, v))
    scores = tf.einsum("bhsk,bhtk->bhst", q, k) / (root or query.shape[-1]) ** 0.5
    return tf.nn.softmax(scores) @ v


def with_matmul(x, query, key, value):
    q = tf.einsum("bsd,dhk->bhsk", x, query) / tf.sqrt(float(query.shape[2]))
    k = tf.einsum("btd,dhk->bhtk", x, key)
    v = tf.einsum("btd,dhk->bhtk", x, value)
    exponentials = tf.exp(tf.matmul(q, k, transpose_b=True))
    return tf.matmul(exponentials / tf.reduce_sum(exponentials, axis=3, keepdims=True), v)


def over_heads(x, query, key, value):
    q, k, v = (tf.einsum("bsd,dhk->bhsk", x, each) for each in (query, key, value))
    scores = tf.einsum("bhsk,bhtk->bhst", q, k) / query.shape[-1] ** 0.5
    return tf.einsum("bhst,bhtk->bhsk", tf.nn.softmax(scores, axis=1), v)


ATTEMPTS = {
    "transformer_block-added": Attempts(
        right=(by_tensor, by_dimension, as_values),
        wrong=(
            (forward, "A gradient is a product too"),
            (by_the_result_alone, "df,bsd->bs"),
            (lambda equation, splits: by_tensor(equation, splits)[2], "three sets"),
            (lambda equation, splits: ["".join(dims) for dims in by_tensor(equation, splits)], "three sets"),
        ),
    ),
    "transformer_block-attend": Attempts(
        takes_long=True,
        right=(attention, with_matmul),
        wrong=(
            (lambda x, *weights: attention(x, *weights, root=x.shape[-1]), "root of the number of features"),
            (lambda x, *weights: x, "the root, the axis of the softmax"),
            (over_heads, "compares heads"),
        ),
    ),
}
