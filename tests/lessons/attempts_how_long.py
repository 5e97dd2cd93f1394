"""Attempts at the exercises of `how_long`."""

import math

from tests.course import from_lesson
from tests.lessons.attempts import Attempts

Plan = from_lesson("how_long.checks", "Plan")
all_reduce = from_lesson("how_long.checks", "all_reduce")


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


def whole_levels(per_node, nodes, num_bytes, inside, between):
    piece = num_bytes / per_node
    in_a_tree = 2 * int(math.log2(nodes)) * between.latency + 2 * piece / between.bandwidth
    in_a_ring = one_ring(nodes, 1, piece, None, between)
    return one_ring(per_node, 1, num_bytes, None, inside) + min(in_a_ring, in_a_tree)


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


ATTEMPTS = {
    "how_long-levels": Attempts(
        right=(by_messages, in_three_moves),
        wrong=(
            (lambda *given: all_reduce(*given) / 2, "size of a piece"),
            (one_ring, "one ring through all"),
            (lambda *given: min(one_ring(*given), all_reduce(*given)), "two levels always"),
            (
                lambda *given: all_reduce(*given[:2], given[2] // given[0] * given[0], *given[3:]),
                "whole number",
            ),
            (whole_levels, "any number of nodes"),
        ),
    ),
    "how_long-plans": Attempts(
        right=(by_loops, lambda *given: tuple(by_loops(*given))),
        wrong=(
            (lambda *given: iter(by_loops(*given)), "has no len"),
            (lambda *given: [Plan(*map(float, vars(each).values())) for each in by_loops(*given)], "`//`"),
            (lambda *given: 2 * by_loops(*given), "Each choice for `tensor`"),
            (lambda *given: [vars(each) for each in by_loops(*given)], "isn't a plan"),
        ),
    ),
}
