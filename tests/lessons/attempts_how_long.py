"""Attempts at the exercises of `how_long`."""

import math

from tests.course import from_lesson
from tests.lessons.attempts import Attempts

Plan = from_lesson("how_long.checks", "Plan")
all_plans, all_reduce, Link = from_lesson("how_long.checks", "all_plans", "all_reduce", "Link")
INSIDE, BETWEEN = Link(240e9, 3.4e-6), Link(25e9, 14e-6)
NETWORK = from_lesson("how_long.checks", "_Network")(40, 6144, 48)


def by_messages(per_node, nodes, num_bytes, inside, between):
    """Message by message, and a branch for each algorithm."""
    seconds = sum(
        inside.latency + num_bytes / per_node / inside.bandwidth for _message in range(2 * per_node - 2)
    )
    piece = num_bytes / per_node
    ring = sum(between.latency + piece / nodes / between.bandwidth for _message in range(2 * nodes - 2))
    tree = 2 * math.log2(nodes) * between.latency + 2 * piece / between.bandwidth
    if ring < tree:
        return seconds + ring
    return seconds + tree


def one_ring(per_node, nodes, num_bytes, _inside, between):
    devices = per_node * nodes
    return 2 * (devices - 1) * (between.latency + num_bytes / devices / between.bandwidth)


def ring(devices, num_bytes, link):
    return one_ring(devices, 1, num_bytes, link, link)


def tree(devices, num_bytes, link):
    return 2 * math.log2(devices) * link.latency + 2 * num_bytes / link.bandwidth


def tree_inside(per_node, nodes, num_bytes, inside, between):
    piece = num_bytes / per_node
    return tree(per_node, num_bytes, inside) + min(ring(nodes, piece, between), tree(nodes, piece, between))


def whole_levels(per_node, nodes, num_bytes, inside, between):
    piece = num_bytes / per_node
    in_a_tree = 2 * int(math.log2(nodes)) * between.latency + 2 * piece / between.bandwidth
    return ring(per_node, num_bytes, inside) + min(ring(nodes, piece, between), in_a_tree)


def tree_below_11_mb(per_node, nodes, num_bytes, inside, between):
    way = ring if num_bytes >= 11e6 else tree
    return ring(per_node, num_bytes, inside) + way(nodes, num_bytes / per_node, between)


def pieces_of_nodes(per_node, nodes, num_bytes, inside, between):
    piece = num_bytes / nodes
    return ring(per_node, num_bytes, inside) + min(ring(nodes, piece, between), tree(nodes, piece, between))


def swapped_latencies(per_node, nodes, num_bytes, inside, between):
    links = type(inside)(inside.bandwidth, between.latency), type(between)(between.bandwidth, inside.latency)
    return all_reduce(per_node, nodes, num_bytes, *links)


def in_three_moves(per_node, nodes, num_bytes, inside, between):
    moves = 2 * (per_node - 1) * (inside.latency + num_bytes / per_node / inside.bandwidth)
    return moves if per_node > 1 and nodes == 1 else all_reduce(per_node, nodes, num_bytes, inside, between)


def by_loops(network, devices, batch):
    found = []
    for examples in range(1, batch + 1):
        for data in range(devices, 0, -1):
            whole = devices % data == 0 and batch % (data * examples) == 0
            if whole and network.heads % (devices // data) == 0:
                found.append(Plan(data, devices // data, examples, batch // (data * examples)))
    return found


def any_data(network, devices, batch):
    """Lets a device have a part of an example."""
    return [
        Plan(devices // tensor, tensor, 1, batch // (devices // tensor))
        for tensor in range(1, devices + 1)
        if devices % tensor == network.heads % tensor == 0
    ]


def heads_only(network, devices, batch):
    found = []
    for tensor in range(1, network.heads + 1):
        data = devices // tensor
        if network.heads % tensor == 0 and batch % data == 0:
            for examples in range(1, batch // data + 1):
                if batch // data % examples == 0:
                    found.append(Plan(data, tensor, examples, batch // data // examples))
    return found


ATTEMPTS = {
    "how_long-levels": Attempts(
        right=(by_messages, in_three_moves),
        wrong=(
            (lambda *given: all_reduce(*given) / 2, "size of a piece"),
            (lambda *given: round(all_reduce(*given)), "size of a piece"),
            (one_ring, "one ring through all"),
            (lambda *given: min(one_ring(*given), all_reduce(*given)), "two levels always"),
            (
                lambda *given: all_reduce(*given[:2], given[2] // given[0] * given[0], *given[3:]),
                "whole number",
            ),
            (lambda *given: all_reduce(*given[:3], INSIDE, BETWEEN), "the links `inside`"),
            (whole_levels, "any number of nodes"),
            (tree_below_11_mb, "where a ring is faster"),
            (tree_inside, "a ring and not a tree"),
            (pieces_of_nodes, "`per_node` pieces"),
            (swapped_latencies, "swapped"),
            (lambda per_node, nodes, *rest: all_reduce(nodes, per_node, *rest), "size of a piece"),
            (
                lambda per_node, nodes, size, inside, between: all_reduce(
                    per_node, nodes, size / per_node, inside, between
                ),
                "size of a piece",
            ),
        ),
    ),
    "how_long-plans": Attempts(
        right=(by_loops, lambda *given: tuple(by_loops(*given))),
        wrong=(
            (lambda *given: iter(by_loops(*given)), "has no len"),
            (lambda *given: [Plan(*map(float, vars(each).values())) for each in by_loops(*given)], "`//`"),
            (lambda network, *given: by_loops(NETWORK, *given), "`network.heads`"),
            (lambda *given: by_loops(*given)[: 5 if given[1] > 40 else None], "whether it fits or not"),
            (any_data, "whole number"),
            (
                lambda *given: [Plan(e.tensor, e.data, e.examples, e.microbatches) for e in by_loops(*given)],
                "changed places",
            ),
            (heads_only, "number of devices, too"),
            (lambda *given: by_loops(*given)[:1], "inside a loop"),
            (
                lambda *given: [each for each in by_loops(*given) if each.tensor in {1, 2, 4, 8, 16}],
                "power of",
            ),
            (lambda *given: [tuple(vars(each).values()) for each in by_loops(*given)], "isn't a plan"),
            (lambda *given: 2 * by_loops(*given), "Each choice for `tensor`"),
            (lambda *given: by_loops(*given)[:-1], "Each choice for `tensor`"),
            (lambda *given: [each for each in by_loops(*given) if each.tensor <= 8], "leave the node"),
            (lambda *given: [vars(each) for each in by_loops(*given)], "isn't a plan"),
        ),
    ),
}
