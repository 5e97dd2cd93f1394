"""Attempts at the exercises of `how_long`."""

import course_lib
from tests.lessons.attempts import Attempts

tf = course_lib.start_tensorflow()


def by_tensor(how, splits):
    tensors = [set(tensor) for tensor in how.replace("->", ",").split(",")]
    axes = set.union(*tensors)
    return tuple(frozenset(splits.get(axis) for axis in axes - own) - {None} for own in tensors)


def forward(how, splits):
    return [set(), set(), by_tensor(how, splits)[2]]


def by_the_result_alone(how, splits):
    first, _second, result = by_tensor(how, splits)
    return [first, by_tensor(how[how.find(",") :], splits)[1], result]


def attention(n, query, key, value, *, root=True):
    q, k, v = (tf.tensordot(n, each, axes=1) for each in (query, key, value))
    q, k, v = (tf.transpose(each, [0, 2, 1, 3]) for each in (q, k, v))
    scores = tf.einsum("bhsk,bhtk->bhst", q, k) / (query.shape[-1] ** 0.5 if root else 1)
    return tf.nn.softmax(scores) @ v


ATTEMPTS = {
    "how_long-added": Attempts(
        right=(by_tensor,),
        wrong=(
            (forward, "A gradient is a product too"),
            (by_the_result_alone, "df,bsd->bs"),
            (lambda how, splits: by_tensor(how, splits)[2], "three sets"),
        ),
    ),
    "how_long-attend": Attempts(
        takes_long=True,
        right=(attention,),
        wrong=(
            (lambda *given: attention(*given, root=False), "root of `size`"),
            (lambda n, *weights: n, "look which letter"),
        ),
    ),
}
