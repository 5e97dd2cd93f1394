"""Ways to train a transformer on so many devices, by arithmetic: python how_long.py [DEVICES ...]."""

import math
import sys

# The network: 18 billion parameters
BLOCKS = 40
WIDTH = 6144  # numbers of a token between blocks
HEADS = 48
VOCABULARY = 51200
SEQUENCE = 2048  # tokens of an example
EXAMPLES = 1024  # of a batch

# The devices: A100s, whose products reach 55 % of their peak
FLOPS_PER_SECOND = 0.55 * 312e12
MEMORY = 80e9

# The links: bytes per second, and the seconds of a message
INSIDE = (240e9, 3.4e-6)
BETWEEN = (25e9, 14e-6)
PER_NODE = 8

# Bytes of a number: in weights, gradients and activations, and what Adam keeps beside it
NUMBER = 2
STATE = 12


def ring(devices, payload, link):
    bandwidth, latency = link
    return (devices - 1) * (latency + payload / devices / bandwidth)


def gather(devices, stride, payload):
    """The seconds of an all-gather, or of a reduce-scatter. An all-reduce is one of each."""
    inside = 1  # how many of the devices share a node
    if PER_NODE % stride == 0:
        inside = math.gcd(PER_NODE // stride, devices)
    between = devices // inside
    return ring(inside, payload, INSIDE) + ring(between, payload / inside, BETWEEN)


def step_seconds(tensor, stages, data, examples, zero):
    """The seconds of a step, a replica taking so many examples at a time."""
    microbatches = EXAMPLES // data // examples
    blocks = BLOCKS / stages
    tokens = examples * SEQUENCE
    activations = NUMBER * tokens * WIDTH

    # Computing: the blocks forward, forward again, and backward, which is twice as much
    block = 24 * tokens * WIDTH**2 + 4 * tokens * SEQUENCE * WIDTH
    logits = 2 * tokens * WIDTH * VOCABULARY
    seconds = (4 * blocks * block + 3 * logits) / tensor / FLOPS_PER_SECOND

    # Tensor parallelism: two all-reduces a block on each of these ways
    seconds += blocks * 3 * 2 * 2 * gather(tensor, 1, activations)

    # Stages: activations go to the next one, their gradients to the one before
    if stages > 1:
        bandwidth, latency = BETWEEN
        seconds += 2 * (latency + activations / tensor / bandwidth)

    # Replicas add up their gradients; under FSDP they gather the weights, twice for each micro-batch
    exchange = gather(data, tensor, NUMBER * stage_weights(tensor, stages))
    if zero == 3:
        seconds += 3 * exchange
        exchange = 0

    # The first micro-batch has to get through all stages before the last one works at all
    return (microbatches + stages - 1) * seconds + 2 * exchange


def stage_weights(tensor, stages):
    """How many weights a device has: those of the first stage, which also has the embedding."""
    return (BLOCKS / stages * 12 * WIDTH**2 + WIDTH * VOCABULARY) / tensor


def memory_bytes(tensor, stages, data, examples, zero):
    microbatches = EXAMPLES // data // examples
    weights = stage_weights(tensor, stages)
    tokens = examples * SEQUENCE

    state = weights * STATE / (data if zero >= 1 else 1)
    rest = weights * 2 * NUMBER / (data if zero == 3 else 1)

    # What goes into each block is kept, for every micro-batch on its way; all is of the block at work
    kept = min(microbatches, stages) * BLOCKS / stages * NUMBER * tokens * WIDTH
    block = tokens * WIDTH * (10 + 24 / tensor) + 5 * examples * HEADS * SEQUENCE**2 / tensor
    logits = NUMBER * tokens * VOCABULARY / tensor
    return state + rest + kept + block + logits


def divisors(number):
    return [each for each in range(1, number + 1) if number % each == 0]


def plans(devices):
    for tensor in divisors(math.gcd(devices, HEADS)):
        for stages in divisors(math.gcd(devices // tensor, BLOCKS)):
            data = devices // tensor // stages
            if EXAMPLES % data == 0:
                for examples in divisors(EXAMPLES // data):
                    for zero in (0, 1, 3):
                        yield tensor, stages, data, examples, zero


if __name__ == "__main__":
    counts = [int(each) for each in sys.argv[1:] if each.isdecimal()]
    for devices in counts or [64, 512]:
        found = list(plans(devices))
        fitting = [plan for plan in found if memory_bytes(*plan) < MEMORY]
        print(f"{devices} devices: {len(fitting)} of {len(found)} plans fit into memory")
        for plan in sorted(fitting, key=lambda plan: step_seconds(*plan))[:3]:
            tensor, stages, data, examples, zero = plan
            print(f"  {step_seconds(*plan):6.2f} s, {memory_bytes(*plan) / 1e9:3.0f} GB:", end=" ")
            print(f"tensor {tensor}, stages {stages}, data {data}, ZeRO-{zero}, {examples} at a time")
