"""The exercises of this lesson: an all-reduce on two levels, and all plans for so many devices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from course_lib.exercises.checks import exercise
from course_lib.exercises.judging import Case, drawn, judge
from course_lib.i18n import _


@dataclass
class Link:
    """What the lesson's own class has."""

    bandwidth: float
    latency: float


def _ring(devices: int, num_bytes: float, link: Link) -> float:
    return 2 * (devices - 1) * (link.latency + num_bytes / devices / link.bandwidth)


def _tree(devices: int, num_bytes: float, link: Link) -> float:
    return 2 * math.log2(devices) * link.latency + 2 * num_bytes / link.bandwidth


def all_reduce(per_node: int, nodes: int, num_bytes: float, inside: Link, between: Link) -> float:
    """Returns the time of a ring in each node, and of a ring or a tree between nodes, of a piece each."""
    return _ring(per_node, num_bytes, inside) + _fastest(nodes, num_bytes / per_node, between)


def _fastest(nodes: int, num_bytes: float, link: Link) -> float:
    return min(_ring(nodes, num_bytes, link), _tree(nodes, num_bytes, link))


def _links(random: np.random.Generator) -> tuple[int, int, int, Link, Link]:
    """Draws a payload for which now the ring is faster, now the tree."""
    per_node, nodes, piece = (2 ** int(random.integers(low, high)) for low, high in ((1, 4), (1, 7), (0, 9)))
    inside, between = (
        Link(int(random.integers(*rates)), int(random.integers(1, 5))) for rates in ((20, 40), (2, 5))
    )
    return per_node, nodes, per_node * piece, inside, between


@exercise("how_long-levels", right=all_reduce)
def levels(answer: Callable[..., float]) -> str | None:
    """The time of an all-reduce on two levels."""
    cases = drawn(_links, count=40)
    fast, slow = Link(240e9, 3.4e-6), Link(25e9, 14e-6)
    return judge(
        answer,
        all_reduce,
        [
            *cases,
            Case((1, 16, 1e6, fast, slow), _("With one device in each node, nothing is added up inside.")),
            Case((8, 1, 1e6, fast, slow), _("With a single node, nothing goes between nodes.")),
            Case((8, 6, 1e6, fast, slow), _("Call `tree_seconds` with any number of nodes.")),
            Case((8, 4, 12, Link(30, 1), Link(3, 1)), _("A piece needn't be a whole number of bytes.")),
            Case(
                (4, 4, 960, Link(1, 1), Link(30, 1)),
                _("Use two levels always, even where a single ring would be faster."),
            ),
        ],
        misconceptions={
            lambda per_node, nodes, size, inside, between: (
                _ring(per_node, size, inside) + _fastest(nodes, size, between)
            ): _(
                "Here the whole payload goes between the nodes. After the first move, a device has a piece."
            ),
            lambda per_node, nodes, size, inside, between: (
                _ring(per_node, size, inside) / 2 + _fastest(nodes, size / per_node, between)
            ): _(
                "Inside a node there are two moves, the first and the last. Together they are a whole ring."
            ),
            lambda per_node, nodes, size, inside, between: (
                2 * _ring(per_node, size, inside) + _fastest(nodes, size / per_node, between)
            ): _("A ring is a reduce-scatter and an all-gather. So one ring inside the node is both moves."),
            lambda per_node, nodes, size, inside, between: (
                _ring(per_node, size, inside) + _ring(nodes, size / per_node, between)
            ): _("Between the nodes you always take a ring. Sometimes a tree is faster."),
            lambda per_node, nodes, size, inside, between: (
                _ring(per_node, size, inside) + _tree(nodes, size / per_node, between)
            ): _("Between the nodes you take a tree where a ring is faster. Compare their two times."),
            lambda per_node, nodes, size, inside, between: (
                _ring(per_node, size, inside) + _fastest(per_node * nodes, size / per_node, between)
            ): _("Each piece is added up by as many devices as there are nodes."),
            lambda per_node, nodes, size, inside, between: max(
                _ring(per_node, size, inside), _fastest(nodes, size / per_node, between)
            ): _("The moves come one after another, so their times add up."),
            lambda per_node, nodes, size, inside, between: (
                _ring(per_node, size, between) + _fastest(nodes, size / per_node, inside)
            ): _("Look at the links: which is the one inside a node?"),
            lambda per_node, nodes, size, inside, between: all_reduce(
                per_node,
                nodes,
                size,
                Link(inside.bandwidth, between.latency),
                Link(between.bandwidth, inside.latency),
            ): _("Each link has its own latency. You have swapped the two."),
            lambda per_node, nodes, size, inside, between: (
                _tree(per_node, size, inside) + _fastest(nodes, size / per_node, between)
            ): _("Inside a node, take a ring and not a tree."),
            lambda per_node, nodes, size, inside, between: (
                _fastest(per_node, size, inside) + _fastest(nodes, size / per_node, between)
            ): _("Inside a node, always take a ring, even where a tree is faster."),
            lambda per_node, nodes, size, inside, between: (
                _ring(per_node, size, inside) + _fastest(nodes, size / nodes, between)
            ): _("The devices of a node share out the payload. So there are `per_node` pieces."),
            lambda inner, nodes, size, *_links: all_reduce(inner, nodes, size, fast, slow): _(
                "Use the links `inside` and `between`."
            ),
            lambda per_node, nodes, size, _inside, between: _ring(per_node * nodes, size, between): _(
                "That is one ring through all devices. Add up inside the nodes first, and then between them."
            ),
        },
        advice=_(
            "Work out the time inside a node first, then the size of a piece, then the two ways between."
        ),
    )


@dataclass
class Plan:
    """What the lesson's own class has."""

    data: int
    tensor: int
    examples: int
    microbatches: int


Plans = Sequence[Plan]
_NODE = 8  # devices
_NO_PLANS, _FLOATS = "no plans", "floats"


def divisors(number: int) -> list[int]:
    """Returns what divides a number."""
    return [each for each in range(1, number + 1) if number % each == 0]


def all_plans(network: Any, devices: int, batch: int) -> Plans:
    """Returns every way to share out the work."""
    return _plans(devices, batch, divisors(math.gcd(devices, network.heads)))


def _plans(devices: int, batch: int, sizes: Iterable[int], *, shared: bool = True) -> Plans:
    found = []
    for tensor in sizes:
        data = devices // tensor
        for examples in divisors(batch // data) if not shared or batch % data == 0 else []:
            found.append(Plan(data, tensor, examples, batch // data // examples))
    return found


def _examples_of_the_batch(network: Any, devices: int, batch: int) -> Plans:
    tensors = divisors(math.gcd(devices, network.heads))
    return [
        Plan(devices // tensor, tensor, examples, batch // (devices // tensor) // examples)
        for tensor in tensors
        if batch % (devices // tensor) == 0
        for examples in divisors(batch)
    ]


@dataclass
class _Network:
    blocks: int
    width: int
    heads: int


@exercise("how_long-plans", right=all_plans)
def plans(answer: Callable[..., Any]) -> str | None:
    """All plans, in any order."""
    figures = [(6, 8, 8), (12, 16, 32), (48, 64, 512), (20, 16, 24), (8, 8, 6), (9, 6, 12)]
    cases = [
        Case(
            (_Network(40, 128 * heads, heads), devices, batch),
            told=_(
                "heads: {heads}, devices: {devices}, batch: {batch}",
                heads=heads,
                devices=devices,
                batch=batch,
            ),
        )
        for heads, devices, batch in figures
    ]

    def in_order(function: Callable[..., Any], *given: Any) -> list[Any] | str:
        answered = function(*given)
        found = list(answered)[: len(answered)]  # which a generator doesn't have
        if not all(hasattr(each, size) for each in found for size in vars(Plan(1, 1, 1, 1))):
            return _NO_PLANS
        sizes = sorted((each.data, each.tensor, each.examples, each.microbatches) for each in found)
        return sizes if all(isinstance(size, Integral) for each in sizes for size in each) else _FLOATS

    def only(kept: Callable[[Plan], bool]) -> Callable[..., Any]:
        return lambda *given: in_order(
            lambda *same: [each for each in all_plans(*same) if kept(each)], *given
        )

    return judge(
        answer,
        lambda *given: in_order(all_plans, *given),
        cases,
        run=in_order,
        misconceptions={
            lambda *_given: _NO_PLANS: _(
                "Something in your list isn't a plan. Make each one with"
                " `Plan(data, tensor, examples, microbatches)`."
            ),
            lambda *_given: _FLOATS: _("Some numbers in your plans are floats, as `8.0`. Divide by `//`."),
            lambda _own, *given: in_order(all_plans, _Network(1, 1, 48), *given): _("Count `network.heads`."),
            lambda _network, devices, batch: in_order(_plans, devices, batch, divisors(devices)): _(
                "Some of your plans split a head. `tensor` must divide `network.heads`, too."
            ),
            only(lambda plan: plan.microbatches == 1): _(
                "Your devices take all their examples at once. Each divisor of their number is a choice."
            ),
            only(lambda plan: plan.examples == 1): _(
                "Your devices take one example at a time. Each divisor of their examples is a choice."
            ),
            only(lambda plan: plan.tensor > 1): _(
                "Plans without tensor parallelism are missing: 1 is a divisor."
            ),
            only(lambda plan: plan.data > 1): _("Plans without data parallelism are missing."),
            only(lambda plan: plan.tensor <= _NODE): _(
                "Plans with a `tensor` above 8 are missing. A replica may leave the node."
            ),
            only(lambda plan: plan.tensor.bit_count() == 1): _(
                "`tensor` needn't be a power of two. It only has to divide the devices and the heads."
            ),
            lambda network, devices, batch: in_order(_plans, devices, batch, divisors(network.heads)): _(
                "`tensor` must divide the number of devices, too."
            ),
            lambda network, devices, batch: in_order(
                partial(_plans, shared=False), devices, batch, divisors(math.gcd(devices, network.heads))
            ): _("In some of your plans, `data` doesn't divide the batch. Leave them out."),
            lambda *given: in_order(_examples_of_the_batch, *given): _(
                "A replica has `batch / data` examples. `examples` must divide these, and not only the batch."
            ),
            lambda *given: in_order(all_plans, *given)[:1]: _(
                "Your list has a single plan. Is the `return` inside a loop?"
            ),
            lambda *given: in_order(lambda *same: all_plans(*same)[:1], *given): _(
                "Your list has a single plan. Is the `return` inside a loop?"
            ),
            lambda *given: in_order(
                lambda *same: [
                    Plan(each.tensor, each.data, each.examples, each.microbatches)
                    for each in all_plans(*same)
                ],
                *given,
            ): _(
                "`data` and `tensor` have changed places: it is `Plan(data, tensor, examples, microbatches)`."
            ),
        },
        advice=_(
            "List every plan, whether it fits or not. Each choice for `tensor` leaves one `data`. A replica"
            " has `batch / data` examples, if that is a whole number: how can it share them out evenly?"
        ),
    )
