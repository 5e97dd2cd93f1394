"""The cost model against numbers worked out by hand, and its errors against what others published."""

import itertools
import math
from dataclasses import replace

import pytest

from course_lib import MeshSpec
from course_lib.specs.architecture import Architecture, Sum, Zero
from course_lib.specs.collectives import Collective, Kind
from course_lib.specs.plan import BATCH
from lessons.scale import machines
from lessons.scale.cost import MIXED, Recompute, StepCosts, Training
from lessons.scale.machines import Cluster, Device, Link
from lessons.scale.networks import transformer
from lessons.scale.pipeline import passes
from lessons.scale.planner import TENSOR_PARALLEL, transformer_plans
from lessons.scale.published import others, trainings

DEVICE = Device("", 1e6, 1500, 1e6, "", efficiency=0.5)
CLUSTER = Cluster(DEVICE, 4, Link(1e9, 1e-6, ""), Link(1e8, 1e-5, ""))
UP, DOWN = Sum("up", (BATCH, "b"), ("x", "W"), times=3), Sum("down", (BATCH, "a"), ("up", "V"), times=3)
NETWORK = Architecture(  # three blocks of two products, 10 -> 100 -> 10: 6,000 parameters
    "three",
    inputs={"rows": (BATCH, "a")},
    variables={"W": ("a", "b"), "V": ("b", "a")},
    sums=(Sum("x", (BATCH, "a"), ("rows",)), UP, DOWN, Sum("loss", (), ("down",))),
    sizes={"a": 10, "b": 100},
    repeats={"W": 3, "V": 3},
    into_block="x",
)
COSTS = StepCosts(NETWORK, {BATCH: "batch", "b": "model"})
ALONE, FOUR = (MeshSpec([("batch", count), ("model", count)]) for count in (1, 2))


def test_a_collective_takes_its_rounds():
    mesh = MeshSpec([("batch", 2), ("one", 1), ("model", 4)])  # each four devices of "model" share a node
    for kind, dims, payload, milliseconds in (
        (Kind.ALL_REDUCE, ("model",), 8_000_000, 6 * (0.001 + 2)),
        (Kind.REDUCE_SCATTER, ("model",), 2_000_000, 3 * (0.001 + 2)),
        (Kind.ALL_REDUCE, ("model",), 400, 4 * 0.001 + 2 * 0.0004),  # a tree: two levels, up and down
        (Kind.ALL_REDUCE, ("batch",), 8_000_000, 2 * (0.01 + 40)),
        (Kind.ALL_REDUCE, ("batch", "model"), 8_000_000, 6 * (0.001 + 2) + 2 * (0.01 + 10)),
        (Kind.ALL_GATHER, ("batch", "model"), 8_000_000, 3 * (0.001 + 2) + 0.01 + 10),
        (Kind.REDUCE_SCATTER, ("batch", "model"), 1_000_000, 3 * (0.001 + 2) + 0.01 + 10),
        (Kind.ALL_TO_ALL, ("batch", "model"), 8_000_000, 7 * (0.01 + 10)),
        (Kind.ALL_REDUCE, ("one",), 8_000_000, 0),
    ):
        seconds = machines.collective_seconds(Collective(kind, mesh, dims, payload), CLUSTER)
        assert 1e3 * seconds == pytest.approx(milliseconds), (kind, dims, payload)


@pytest.mark.parametrize("sizes", [(1, 2, 4, 2), (2, 4, 1, 2), (4, 2, 2, 1), (2, 1, 2, 4)])
def test_the_nodes_of_a_group_are_those_of_its_devices(sizes):
    mesh = MeshSpec(zip("abcd", sizes, strict=True))
    for names, per_node in itertools.product(["a", "d", "ac", "bd", "bcd"], [1, 2, 4, 8, 16]):
        group = mesh.groups(*names)[0]
        nodes = len({device // per_node for device in group})
        assert machines.group_sizes(mesh, tuple(names), per_node) == (len(group) // nodes, nodes)


def test_a_sum_takes_as_long_as_its_operations_or_its_way_to_memory():
    for memory_rate, training, seconds in (
        (math.inf, Training(), 3 * 6 * 0.032),  # six products of 16,000 operations at 500,000 a second
        (math.inf, Training(microbatches=2, recompute=Recompute.FULL), 4 * 6 * 0.032),
        (1e6, Training(), 3 * (6 * 0.032 + 640e-6 + 324e-6)),  # x moves 160 numbers, the loss 81
        (1e5, Training(), 3 * 1e-5 * (6 * 7520 + 640 + 324)),  # a product moves 80 + 800 + 1,000
    ):
        cluster = replace(CLUSTER, device=replace(DEVICE, memory_bytes_per_second=memory_rate))
        assert COSTS.cost(ALONE, 8, cluster, training).compute_seconds == pytest.approx(seconds)


def test_memory_holds_variables_gradients_averages_and_activations():
    for mesh, training, memory in (  # the activations: x, up, down, loss
        (ALONE, Training(), [24000, 24000, 48000, 4 * (80 + 2400 + 240 + 1)]),
        (ALONE, MIXED, [12000, 12000, 72000, 2 * (80 + 2400 + 240 + 1)]),
        (ALONE, Training(recompute=Recompute.FULL), [24000, 24000, 48000, 4 * (80 + 800 + 80 + 1 + 3 * 80)]),
        (ALONE, Training(microbatches=2), [24000, 24000, 48000, 4 * (40 + 1200 + 120 + 1)]),
        (FOUR, Training(), [12000, 12000, 24000, 4 * (40 + 600 + 120 + 1)]),
    ):
        assert [*COSTS.cost(mesh, 8, CLUSTER, training).memory_bytes.values()] == memory


def test_each_microbatch_adds_up_activations_and_each_step_gradients():
    slow = replace(CLUSTER, inside=Link(1.0, 0.0, ""))  # two devices send as many bytes as they have
    for training, model, batch in (  # `down`, gradient of x; gradients of W and V, loss
        (Training(), 3 * 160 + 3 * 160, 6 * 2000 + 4),
        (Training(recompute=Recompute.FULL), 2 * 3 * 160 + 3 * 160, 6 * 2000 + 4),  # the loss is in no block
        (Training(microbatches=2), 2 * (3 * 80 + 3 * 80), 6 * 2000 + 2 * 4),
    ):
        assert COSTS.cost(FOUR, 8, slow, training).communication_seconds == {"model": model, "batch": batch}


# --- Stages


def deep(num_blocks):
    """Returns a network of nothing but blocks, each a product with 100 numbers."""
    return Architecture(
        "deep",
        inputs={"rows": (BATCH, "a")},
        variables={"W": ("a", "b")},
        sums=(Sum("y", (BATCH, "b"), ("rows", "W"), times=num_blocks),),
        sizes={"a": 10, "b": 10},
        repeats={"W": num_blocks},
        into_block="rows",
    )


@pytest.mark.parametrize("message", [0.0, 1e-4])
@pytest.mark.parametrize(
    ("stages", "chunks", "microbatches"),
    [(2, 1, 2), (4, 1, 8), (8, 1, 32), (3, 1, 7), (2, 3, 4), (4, 2, 8), (4, 6, 16), (8, 3, 8)],
)
def test_stages_take_as_long_as_their_schedule(stages, chunks, microbatches, message):
    link = Link(math.inf, message, "")
    cluster = Cluster(replace(DEVICE, memory_bytes_per_second=math.inf), 4, link, link)
    training, mesh = Training(microbatches=microbatches, chunks=chunks), MeshSpec([("stage", stages)])
    cost = StepCosts(deep(stages * chunks), {}).cost(mesh, 2 * microbatches, cluster, training)
    forward = chunks * 2 * 200 / 5e5  # of two examples through a stage
    done = passes(stages, microbatches, chunks, forward / chunks, message)
    wanted = max(lane[-1].end for lane in done)
    assert cost.seconds == pytest.approx(wanted, rel=0.2 if message else 1e-9)
    assert cost.seconds > wanted - 1e-9  # messages never hide here


# --- What is split over `batch`, and what hides behind computing


@pytest.mark.parametrize(
    ("zero", "memory", "rounds"),
    [  # of 8 blocks on a stage with 100 numbers each, of 2 + 2 + 12 bytes
        (Zero.NOTHING, [1600, 1600, 9600], 2),
        (Zero.STATE, [1600, 1600, 2400], 2),
        (Zero.GRADIENTS, [1600, 400, 2400], 1 + 2),
        (Zero.VARIABLES, [400 + 2 * 200, 400, 2400], 3 * 2),
    ],
)
def test_what_is_split_over_the_batch_takes_less_memory_and_more_exchange(zero, memory, rounds):
    slow = replace(CLUSTER, inside=Link(1.0, 0.0, ""), between=Link(1.0, 0.0, ""))
    training = replace(MIXED, microbatches=2, zero=zero)
    mesh = MeshSpec([("stage", 2), ("batch", 4)])
    found = StepCosts(deep(16), {BATCH: "batch"}).cost(mesh, 16, slow, training)
    assert [*found.memory_bytes.values()][:3] == memory
    assert found.communication_seconds["batch"] == rounds * 3 / 4 * 1600


@pytest.mark.parametrize(
    ("zero", "milliseconds"),
    [  # of a block; forward takes 0.4 of them, backward 0.8, a reduce-scatter or an all-gather 1.2
        (Zero.NOTHING, 2.4 - 0.8),
        (Zero.STATE, (1.2 - 0.8) + (1.2 - 0.4)),
        (Zero.GRADIENTS, (1.2 - 0.8) + (1.2 - 0.4)),
        (Zero.VARIABLES, (1.2 - 0.4) + (2.4 - 0.8)),
    ],
)
def test_an_exchange_hides_behind_the_pass_of_a_block(zero, milliseconds):
    link = Link(2.5e5, 0.0, "")
    cluster = Cluster(replace(DEVICE, memory_bytes_per_second=math.inf), 8, link, link)
    costs, mesh = StepCosts(deep(16), {BATCH: "batch"}), MeshSpec([("batch", 4)])
    for batch_size, exposed in ((4, 16 * milliseconds), (4 * 8, 0.0)):
        found = costs.cost(mesh, batch_size, cluster, Training(zero=zero, overlap=True))
        assert 1e3 * found.communication_seconds["batch"] == pytest.approx(exposed)


# --- Transformers


@pytest.mark.parametrize(
    ("recompute", "sequence_parallel", "of_x", "of_scores"),
    [  # in bytes, of a block whose heads and hidden units are split among 8: arXiv 2205.05198, table 2
        (Recompute.NONE, False, 10 + 24 / 8, 5 / 8),
        (Recompute.NONE, True, 34 / 8, 5 / 8),
        (Recompute.SELECTIVE, True, 34 / 8, 0),
        (Recompute.FULL, False, 2, 0),
    ],
)
def test_a_block_keeps_what_the_paper_counts(recompute, sequence_parallel, of_x, of_scores):
    sizes, mesh = {"sequence": 2048, "features": 6144, "heads": 64}, MeshSpec([("model", 8)])
    training = replace(MIXED, recompute=recompute, sequence_parallel=sequence_parallel)
    two, three = (
        StepCosts(transformer(blocks, **sizes, vocabulary=512, dropout=True), TENSOR_PARALLEL)
        .cost(mesh, 4, CLUSTER, training)
        .memory_bytes["activations"]
        for blocks in (2, 3)
    )
    counted = 4 * 2048 * (6144 * of_x + 64 * 2048 * of_scores)
    assert three - two == pytest.approx(counted, rel=0.001)


def test_the_planner_finds_every_way_to_train_a_transformer():
    network = transformer(4, sequence=8, features=12, heads=4, vocabulary=8, dropout=True)
    wanted = []
    for stages, data, model, microbatches, chunks in itertools.product(range(1, 9), repeat=5):
        mesh = MeshSpec([("stage", stages), ("batch", data), ("model", model)])
        divides = 8 % (data * microbatches) == 4 % (stages * chunks) == 4 % model == 0
        is_interleaved = stages > 1 and microbatches % stages == 0
        legal = mesh.size == 8 and divides and (chunks == 1 or is_interleaved)
        times = 3 * (4 if data > 1 else 1)
        wanted += [(str(mesh), microbatches, chunks)] * times * legal
    found = transformer_plans(network, 8, 8, CLUSTER, Training())
    told = [(str(each.plan.mesh), each.training.microbatches, each.training.chunks) for each in found.plans]
    assert sorted(told) == sorted(wanted)
    assert len({(each.plan.mesh, each.training) for each in found.plans}) == len(told)


def test_a_ranking_says_which_plans_are_equally_good_and_what_binds():
    network = transformer(8, sequence=64, features=64, heads=8, vocabulary=64)
    for change, binds in (
        ({}, "computing"),
        ({"device": replace(DEVICE, memory_bytes=1_000_000.0)}, "memory"),
        ({"inside": Link(1e2, 0.0, ""), "between": Link(1e2, 0.0, "")}, "links"),
    ):
        cluster = replace(CLUSTER, **{"device": replace(DEVICE, memory_bytes=1e9), **change})
        ranking = transformer_plans(network, 8, 16, cluster, Training())
        seconds = [each.cost.seconds for each in ranking.plans[: ranking.num_fitting]]
        assert ranking.binds() == binds
        assert seconds == sorted(seconds)
        assert ranking.num_best == sum(each <= 1.05 * seconds[0] for each in seconds)
        assert 0 < ranking.utilisation(ranking.plans[0]) < DEVICE.efficiency


def test_published_numbers_are_missed_by_as_much_as_the_book_says():
    errors = [round(100 * each.row.error) for each in trainings()]
    assert errors[:10] == [0, 3, 8, 9, 16, 8, 14, 13, 16, 23]  # the first is fitted
    assert errors[10:19] == [10, -1, 19, 13, 27, 22, 33, 31, 19]
    assert sorted(errors[19:])[:8] == [-74, -72, -24, -22, -22, -20, -15, -7]
    assert sorted(errors[19:])[-5:] == [22, 24, 27, 27, 32]
    wanted = [0, -17, -35, 3, -14, -53, 22, -49, -83, -9, -16, 74, 27, 21, 0]
    assert [round(100 * row.error) for row in others()] == wanted
