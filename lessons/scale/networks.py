"""The networks of this part, declared by the axes of their tensors, and the machines that they run on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from course_lib.specs.architecture import Architecture, Sum
from course_lib.specs.plan import BATCH, Axes, Plan
from course_lib.specs.step import Event, Phase, gradient_of
from lessons.scale.machines import Cluster, Device, Link

TOKENS = (BATCH, "sequence")  # the axes of what there is one of for each token
_VALUES, _SCORES = (*TOKENS, "features"), (BATCH, "heads", "sequence", "keys")
_BY_HEAD, _OF_KEYS = (BATCH, "heads", "sequence", "size"), (BATCH, "heads", "keys", "size")
_AS_KEYS = (("sequence", "keys"),)
_BLOCK_VARIABLES: dict[str, Axes] = {
    "gain_1": ("features",),
    **dict.fromkeys(("query", "key", "value"), ("features", "heads", "size")),
    "out": ("heads", "size", "features"),
    "gain_2": ("features",),
    "up": ("features", "hidden"),
    "up_bias": ("hidden",),
    "down": ("hidden", "features"),
}
_ATTENTION = "scores", "shares", "dropped"
# What dropout makes, and out of what
_DROPPED = {"dropped": "shares", "dropped_2": "attention output", "dropped_3": "MLP output"}
_BLOCK_SUMS = (
    Sum("squares_1", TOKENS, ("x",)),
    Sum("normed_1", _VALUES, ("x", "squares_1", "gain_1")),
    Sum("queries", _BY_HEAD, ("normed_1", "query")),
    Sum("all_keys", _OF_KEYS, ("normed_1", "key"), _AS_KEYS),
    Sum("values", _OF_KEYS, ("normed_1", "value"), _AS_KEYS),
    Sum("scores", _SCORES, ("queries", "all_keys"), kept=0),
    Sum("shares", _SCORES, ("scores",)),
    Sum("dropped", _SCORES, ("shares",), kept=1.5),
    Sum("mixed", _BY_HEAD, ("dropped", "values")),
    Sum("attention output", _VALUES, ("mixed", "out"), kept=0),
    Sum("dropped_2", _VALUES, ("attention output",), kept=0.5),
    Sum("x_2", _VALUES, ("x", "dropped_2")),
    Sum("squares_2", TOKENS, ("x_2",)),
    Sum("normed_2", _VALUES, ("x_2", "squares_2", "gain_2")),
    Sum("units", (*TOKENS, "hidden"), ("normed_2", "up")),
    Sum("active", (*TOKENS, "hidden"), ("units", "up_bias")),
    Sum("MLP output", _VALUES, ("active", "down"), kept=0),
    Sum("dropped_3", _VALUES, ("MLP output",), kept=0.5),
    Sum("x_3", _VALUES, ("x_2", "dropped_3")),
)


@cache  # the planner keeps what it learns of a network
def transformer(
    num_blocks: int = 1,
    *,
    sequence: int,
    features: int,
    heads: int,
    vocabulary: int,
    size: int | None = None,
    hidden: int | None = None,
    dropout: bool = False,
    fused_attention: bool = False,
) -> Architecture:
    """Returns a transformer that predicts a token at each place: embedding, blocks, a product for the logits.

    A block normalises by the root of the mean square, attends, normalises again, and has two dense layers.
    Of a plan that splits the sequence it would tell too little.

    Args:
        num_blocks: how many blocks follow each other.
        sequence: how many tokens an example has.
        features: how many numbers a token has between blocks.
        heads: of the attention.
        vocabulary: how many tokens there are.
        size: of a query and of a key in a head; `features / heads` where it is not given.
        hidden: the units of the first dense layer; `4 * features` where it is not given.
        dropout: whether the shares of attention and what each sublayer makes are dropped out.
        fused_attention: whether scores and shares never reach the memory (https://arxiv.org/abs/2205.14135).

    Source: https://arxiv.org/abs/1706.03762 (Attention Is All You Need).
    """
    return Architecture(
        "transformer",
        inputs={"tokens": (*TOKENS, "vocabulary")},
        variables={
            "embedding": ("vocabulary", "features"),
            "position": ("sequence", "features"),
            **_BLOCK_VARIABLES,
            "unembedding": ("features", "vocabulary"),
        },
        sums=(
            Sum("embedded", _VALUES, ("tokens", "embedding"), is_lookup=True),
            Sum("x", _VALUES, ("embedded", "position")),
            *_block_sums(num_blocks, dropout, fused_attention),
            Sum("logits", (*TOKENS, "vocabulary"), ("x_3", "unembedding")),
            Sum("largest", TOKENS, ("logits",)),
            Sum("exponentials", TOKENS, ("logits",)),
            Sum("losses", TOKENS, ("logits",)),
            Sum("loss", (), ("losses",)),
        ),
        sizes={
            "sequence": sequence,
            "keys": sequence,
            "features": features,
            "heads": heads,
            "size": size or features // heads,
            "hidden": hidden or 4 * features,
            "vocabulary": vocabulary,
        },
        repeats=dict.fromkeys(_BLOCK_VARIABLES, num_blocks),
        into_block="x",
        selective=() if fused_attention else _ATTENTION,
    )


def _block_sums(times: int, dropout: bool, fused_attention: bool) -> Iterator[Sum]:
    for each in _BLOCK_SUMS:
        if dropout or each.result not in _DROPPED:
            operands = each.operands if dropout else tuple(_DROPPED.get(name, name) for name in each.operands)
            in_memory = not (fused_attention and each.result in _ATTENTION)
            yield replace(each, operands=operands, times=times, in_memory=in_memory)


def classifier(*layers: int) -> Architecture:
    """Returns a classifier of two or more dense layers without normalisation, `classifier(1200, 48, 2)`.

    Its axes are `features`, `hidden`, `hidden_2` ..., `classes`.
    """
    others = (f"hidden_{at}" for at in range(2, len(layers) - 1))
    names = ["features", "hidden", *others, "classes"]
    variables: dict[str, Axes] = {}
    sums, value = [], "rows"
    for at, pair in enumerate(itertools.pairwise(names), start=1):
        variables |= {f"W{at}": pair, f"b{at}": pair[1:]}
        product, made = f"{value} @ W{at}", f"layer {at}"
        sums += [
            Sum(product, (BATCH, pair[1]), (value, f"W{at}")),
            Sum(made, (BATCH, pair[1]), (product, f"b{at}")),
        ]
        value = made
    ends = [Sum(name, (BATCH,), (value,)) for name in ("largest", "exponentials", "losses")]
    return Architecture(
        "classifier",
        inputs={"rows": (BATCH, "features")},
        variables=variables,
        sums=(*sums, *ends, Sum("loss", (), ("losses",))),
        sizes=dict(zip(names, layers, strict=True)),
    )


def network_step(network: Architecture, plan: Plan, batch_size: int) -> list[Event]:
    """Returns the exchanges of a step of any network that is declared by its axes, each block once.

    Raises:
        CourseError: as `Architecture.exchanges`.
    """
    held = plan.shardings(network.tensors, {**network.sizes, BATCH: batch_size})
    return [
        Event(
            Phase.BACKWARD if each.is_gradient else Phase.FORWARD,
            gradient_of(each.tensor) if each.is_gradient else each.tensor,
            held[each.tensor],
            held[each.tensor],
            each.collective,
        )
        for each in network.exchanges(plan, batch_size)
    ]


_NCCL = "https://github.com/NVIDIA/nccl (src/graph/topo.h, src/graph/tuning.cc)"
_BOOK = "https://jax-ml.github.io/scaling-book/tpus"
_MEGATRON = "https://arxiv.org/abs/2104.04473"

A100 = Device("A100", 312e12, 80e9, 2.039e12, _MEGATRON)
H100 = Device("H100", 989e12, 80e9, 3.35e12, "https://jax-ml.github.io/scaling-book/gpus")
TPU_V5E = Device("TPU v5e", 197e12, 16e9, 0.81e12, _BOOK)
CLUSTERS = {
    # Each way NVLink 12 x 20 GB/s and 18 x 20.6 GB/s; a network adapter of 200 and 400 Gb/s for each device.
    "A100": Cluster(A100, 8, Link(240e9, 3.4e-6, _NCCL), Link(25e9, 14e-6, _NCCL)),
    "H100": Cluster(H100, 8, Link(371e9, 3.4e-6, _NCCL), Link(50e9, 14e-6, _NCCL)),
    # One ring of a torus of 16 x 16 chips; beyond it the data centre's network.
    "TPU v5e": Cluster(TPU_V5E, 256, Link(90e9, 1e-6, _BOOK), Link(3.125e9, 14e-6, _BOOK)),
}
