"""Plans for a transformer: how long a step takes, and does it fit?

By arithmetic alone, with data and tensor parallelism.

Run it: python how_long.py [DEVICES ...]
"""

import math
import sys
from dataclasses import dataclass


@dataclass
class Link:
    bandwidth: float  # bytes per second
    latency: float  # seconds


@dataclass
class Network:
    blocks: int
    width: int  # features of a token
    heads: int


@dataclass
class Plan:
    data: int
    tensor: int
    examples: int  # micro-batch size
    microbatches: int


@dataclass
class Machine:
    flops: float  # per second, as matrix products reach them
    memory: float  # bytes of a device
    inside: Link
    between: Link


INSIDE = Link(240e9, 3.4e-6)  # between two A100s in one node
BETWEEN = Link(25e9, 14e-6)  # from an A100 to another node
NODE = 8  # devices in a node
PEAK_SHARE = 0.52  # fitted to one run
A100 = Machine(PEAK_SHARE * 312e12, 80e9, INSIDE, BETWEEN)

SEQUENCE = 2048  # tokens of an example
VOCABULARY = 51200
BATCH = 512  # examples

# 18 billion parameters
network = Network(blocks=40, width=6144, heads=48)

BYTES = {"variables": 2, "gradients": 2, "optimizer": 12}
FEATURE_SPLIT = 24  # bytes for a feature of a token
FEATURE_WHOLE = 10
PAIR = 5  # bytes for a pair of tokens, in each head


def ring_seconds(devices, num_bytes, link):
    messages = 2 * (devices - 1)
    chunk = num_bytes / devices
    return messages * (link.latency + chunk / link.bandwidth)


def tree_seconds(devices, num_bytes, link):
    messages = 2 * math.log2(devices)
    return messages * link.latency + 2 * num_bytes / link.bandwidth


def all_reduce(per_node, nodes, num_bytes, inside, between):
    piece = num_bytes / per_node
    in_a_ring = ring_seconds(nodes, piece, between)
    in_a_tree = tree_seconds(nodes, piece, between)
    within = ring_seconds(per_node, num_bytes, inside)
    return within + min(in_a_ring, in_a_tree)


def spread(devices, room):
    # `room`: how many members of the group fit into one node
    per_node = math.gcd(devices, room)
    nodes = devices // per_node
    return per_node, nodes


def over_tensor(machine, plan, num_bytes):
    per_node, nodes = spread(plan.tensor, NODE)
    links = machine.inside, machine.between
    return all_reduce(per_node, nodes, num_bytes, *links)


def over_data(machine, plan, num_bytes):
    replicas_in_a_node = max(NODE // plan.tensor, 1)
    per_node, nodes = spread(plan.data, replicas_in_a_node)
    links = machine.inside, machine.between
    return all_reduce(per_node, nodes, num_bytes, *links)


def parameters_held(network, plan):
    blocks = 12 * network.width**2 * network.blocks
    embedding = network.width * VOCABULARY
    return (blocks + embedding) / plan.tensor


def tensor_seconds(network, machine, plan):
    # In one micro-batch
    tokens = plan.examples * SEQUENCE
    num_bytes = 2 * tokens * network.width
    times = 4 * network.blocks
    return times * over_tensor(machine, plan, num_bytes)


def gradient_seconds(network, machine, plan):
    # Once a step, 2 bytes for each parameter
    num_bytes = 2 * parameters_held(network, plan)
    return over_data(machine, plan, num_bytes)


def compute_seconds(network, machine, plan):
    # Forward pass of one token: 12 * width**2 weights of a block
    block_flops = 2 * 12 * network.width**2
    # Queries times keys, and the weighted sum of the values
    attention_flops = 2 * 2 * SEQUENCE * network.width
    # The logits: features times vocabulary
    logit_flops = 2 * network.width * VOCABULARY

    forward = network.blocks * (block_flops + attention_flops)
    forward += logit_flops
    # In one micro-batch, forward and backward
    tokens = plan.examples * SEQUENCE
    flops = 3 * tokens * forward / plan.tensor
    return flops / machine.flops


def step_seconds(network, machine, plan):
    compute = compute_seconds(network, machine, plan)
    activations = tensor_seconds(network, machine, plan)
    gradients = gradient_seconds(network, machine, plan)
    return plan.microbatches * (compute + activations) + gradients


def activation_bytes(network, plan):
    tokens = plan.examples * SEQUENCE
    per_feature = FEATURE_WHOLE + FEATURE_SPLIT / plan.tensor
    features = tokens * network.width * per_feature
    heads = network.heads / plan.tensor
    pairs = PAIR * tokens * SEQUENCE * heads
    logits = 2 * tokens * VOCABULARY / plan.tensor
    return network.blocks * (features + pairs) + logits


def memory_held(network, plan):
    parameters = parameters_held(network, plan)
    held = {}
    for name, num_bytes in BYTES.items():
        held[name] = num_bytes * parameters
    held["activations"] = activation_bytes(network, plan)
    return held


def divisors(number):
    return [each for each in range(1, number + 1) if number % each == 0]


def all_plans(network, devices, batch):
    plans = []
    for tensor in divisors(devices):
        data = devices // tensor
        if network.heads % tensor == 0 and batch % data == 0:
            for examples in divisors(batch // data):
                microbatches = batch // data // examples
                plan = Plan(data, tensor, examples, microbatches)
                plans.append(plan)
    return plans


def ranked(network, machine, plans):
    found = []
    for plan in plans:
        held = memory_held(network, plan)
        if sum(held.values()) <= machine.memory:
            seconds = step_seconds(network, machine, plan)
            found.append((seconds, plan))
    return sorted(found, key=lambda pair: pair[0])


if __name__ == "__main__":
    counts = [int(each) for each in sys.argv[1:] if each.isdecimal()]
    for devices in counts or [64, 256]:
        plans = all_plans(network, devices, BATCH)
        found = ranked(network, A100, plans)
        fitting = f"{len(found)} of {len(plans)} plans fit"
        print(f"{devices} devices: {fitting}")
        for seconds, plan in found[:3]:
            held = sum(memory_held(network, plan).values())
            print(f"  {seconds:.2f} s, {held / 1e9:.0f} GB, {plan}")
