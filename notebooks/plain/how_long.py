"""The plans under which a transformer trains fastest, by arithmetic: python how_long.py [DEVICES ...]."""

import math
import sys
from itertools import combinations

BLOCKS, MICROBATCHES = 40, 4
SIZES = {"b": 1024, "s": 2048, "t": 2048, "d": 6144, "h": 48, "k": 128, "f": 24576, "v": 51200}
PRODUCTS = [  # what is multiplied, how, and how often
    (("tokens", "embedding"), "bsv,vd->bsd", 1),
    (("normed", "query"), "bsd,dhk->bhsk", BLOCKS),
    (("normed", "key"), "btd,dhk->bhtk", BLOCKS),
    (("normed", "value"), "btd,dhk->bhtk", BLOCKS),
    (("queries", "keys"), "bhsk,bhtk->bhst", BLOCKS),
    (("shares", "values"), "bhst,bhtk->bhsk", BLOCKS),
    (("mixed", "out"), "bhsk,hkd->bsd", BLOCKS),
    (("normed again", "up"), "bsd,df->bsf", BLOCKS),
    (("units", "down"), "bsf,fd->bsd", BLOCKS),
    (("x", "head"), "bsd,dv->bsv", 1),
]
VARIABLES = {"embedding", "query", "key", "value", "out", "up", "down", "head"}
FLOPS_PER_SECOND, MEMORY_BYTES = 0.48 * 312e12, 80e9  # of an A100, where products reach 48 %
PER_NODE, INSIDE, BETWEEN = 8, (240e9, 3.4e-6), (25e9, 14e-6)  # bytes a second, and seconds of a message
NUMBER_BYTES, STATE_BYTES = 2, 12  # of a number, and of what Adam keeps for a number of a variable


def ring(num_devices, num_bytes, link):
    return 2 * (num_devices - 1) * (link[1] + num_bytes / num_devices / link[0])


def tree(num_devices, num_bytes, link):
    return 2 * math.log2(num_devices) * link[1] + 2 * num_bytes / link[0]


def all_reduce(num_devices, stride, num_bytes):
    inside = math.gcd(PER_NODE // stride, num_devices) if PER_NODE % stride == 0 else 1
    between, part = num_devices // inside, num_bytes / inside  # nodes, and what is left for them
    outside = min(ring(between, part, BETWEEN), tree(between, part, BETWEEN))
    return ring(inside, num_bytes, INSIDE) + outside


def sums(splits):
    """Returns what a step adds up among devices: by tensor and mesh dimension its axes, and how often."""
    found = {}
    for number, (names, how, times) in enumerate(PRODUCTS):
        tensors = zip((*names, f"result {number}"), how.replace("->", ",").split(","))
        for name, axes in tensors:  # the result forward; on the way back the gradient of what is multiplied
            for axis in {*how} & {*splits} - {*axes}:
                found[name, splits[axis]] = axes, times
    return found


def cost(splits, mesh):
    local = {axis: size / mesh[splits[axis]] if axis in splits else size for axis, size in SIZES.items()}
    local["b"] /= MICROBATCHES

    def count(axes):
        return math.prod(local[axis] for axis in {*axes} & {*SIZES})

    flops = sum(2 * times * (4 if times > 1 else 3) * count(how) for _, how, times in PRODUCTS)
    seconds = MICROBATCHES * flops / FLOPS_PER_SECOND
    for (name, dim), (axes, times) in sums(splits).items():
        stride = mesh["model"] if dim == "batch" else 1  # the devices of `model` are neighbours
        twice = name.startswith("result") and times > 1  # computed again on the way back
        passes = 1 if name in VARIABLES else MICROBATCHES * (1 + twice)
        seconds += times * passes * all_reduce(mesh[dim], stride, NUMBER_BYTES * count(axes))
    numbers = sum(times * count(axes) for axes, times in sums({"b": "batch"}).values())
    kept = BLOCKS * count("bsd") + sum(count(how.split("->")[1]) for _, how, _ in PRODUCTS)
    return seconds, numbers * (2 * NUMBER_BYTES + STATE_BYTES) + NUMBER_BYTES * kept


def plans(num_devices):
    for model in (size for size in range(1, num_devices + 1) if num_devices % size == 0):
        mesh = {"batch": num_devices // model, "model": model}
        for count in range(4):
            for axes in combinations("hfv", count):
                splits = {"b": "batch", **dict.fromkeys(axes, "model")}
                whole = all(SIZES[axis] % mesh[dim] == 0 for axis, dim in splits.items())
                if whole and (model > 1) == bool(axes) and SIZES["b"] % (mesh["batch"] * MICROBATCHES) == 0:
                    yield *cost(splits, mesh), mesh, axes


for num_devices in [int(each) for each in sys.argv[1:] if each.isdecimal()] or [64, 512]:
    fitting = sorted(
        (each for each in plans(num_devices) if each[1] < MEMORY_BYTES), key=lambda each: each[0]
    )
    print(f"{num_devices} devices: {len(fitting)} plans fit into memory")
    for seconds, num_bytes, mesh, axes in fitting[:3]:
        plan = f"{mesh}, `model` splits {', '.join(axes) or 'nothing'}"
        print(f"  {seconds:6.2f} s, {num_bytes / 1e9:3.0f} GB, {plan}")
