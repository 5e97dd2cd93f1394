"""What a training step spends its time on, in the three schemes: each part measured by itself, in turns.

- A step with nothing to exchange has the sizes that one device has in the scheme, under a plan that splits
  nothing: the eight devices do a device's work, each for itself.
- The same with one number in place of each tensor is what TensorFlow takes to start the operations.
- The collectives are those that are observed in the scheme's step, one after the other, in a function that
  does nothing else but put together and take apart what shares one, as the step does. It is observed too, and
  refused if its collectives are others.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from course_lib import setup

setup(devices=8)

from benchmarks.training import (  # noqa: E402
    BATCH_SIZE,
    REPEATS,
    SCHEMES,
    Turn,
    course_loop,
    random_examples,
    timed,
)
from course_lib.data.examples import Examples  # noqa: E402
from course_lib.devices.graphs import collectives  # noqa: E402
from course_lib.models.placement import OnMesh  # noqa: E402
from course_lib.models.sentiment import DEFAULT_DIMS, MLP, initial_values  # noqa: E402
from course_lib.runtime import start_tensorflow  # noqa: E402
from course_lib.specs.collectives import Collective  # noqa: E402
from course_lib.specs.plan import Plan, replicated  # noqa: E402
from course_lib.training.batches import BatchOrder  # noqa: E402
from course_lib.training.compiled import Compiled, repeated  # noqa: E402
from course_lib.training.trainer import Batches, Trainer, write  # noqa: E402
from course_lib.training.work import STEPS_PER_CALL  # noqa: E402

tf = start_tensorflow()

TINY = {"batch": 1, "features": 1, "hidden": 1, "classes": 1}
WHOLE = {"batch": BATCH_SIZE, **dict(zip(MLP.spec.axes, DEFAULT_DIMS, strict=True))}

Parts = dict[str, float]


def measure() -> dict[str, Parts]:
    """Returns the parts of a step of each scheme: medians, its measurements taking turns.

    Seconds of `loop`, a step of the training loop as a reader runs it; `step`, one on batches that lie on the
    devices already; `packing`, choosing rows on the host and sending each device its own; `tiny`, the
    operations of a step with one number in place of each tensor and nothing to exchange; `share`, the same
    with as many numbers as a device has of each tensor; `exchanges`, the step's collectives and nothing else.
    Then how many collectives these are, and the bytes of what one device holds of all their results.
    """
    examples = random_examples()
    return {scheme: measure_scheme(make_plan(), examples) for scheme, make_plan in SCHEMES.items()}


def measure_scheme(plan: Plan, examples: Examples) -> Parts:
    """Returns the parts of a step under a plan."""
    trainer, batches = trained(plan, WHOLE)
    exchanged = collectives_of_a_step(trainer, plan, batches)
    local = {axis: size // plan.num_shards(axis) for axis, size in WHOLE.items()}
    turns = {
        "loop": course_loop(plan, examples),
        "step": steps(trainer, batches),
        "packing": packing(trainer, examples),
        "tiny": steps(*trained(replicated(8), TINY)),
        "share": steps(*trained(replicated(8), local)),
        "exchanges": exchanges(trainer, plan, exchanged),
    }
    for turn in turns.values():  # to compile and warm up
        turn()
    seconds = [{name: turn() for name, turn in turns.items()} for _repeat in range(REPEATS)]
    medians = {name: statistics.median(each[name] for each in seconds) for name in turns}
    payload = sum(each.payload_bytes for each in exchanged)
    return {**medians, "num_collectives": len(exchanged), "payload_bytes": payload}


def trained(plan: Plan, sizes: Mapping[str, int]) -> tuple[Trainer, Batches]:
    """Returns a trainer of the sentiment model with these sizes, and 32 batches on its devices."""
    values = initial_values(dims=[sizes[axis] for axis in MLP.spec.axes])
    trainer = Trainer(MLP(values, plan))
    random, stack = np.random.default_rng(0), (STEPS_PER_CALL, sizes["batch"])
    features = random.standard_normal((*stack, sizes["features"]), np.float32)
    return trainer, trainer.send(features, random.integers(0, sizes["classes"], stack))


def timed_calls(call: Callable[[int], object]) -> Turn:
    """Returns the measurement of calls of 32 steps each; `call` gets the number of the call."""
    return timed(lambda num_steps: [call(number) for number in range(num_steps // STEPS_PER_CALL)])


def steps(trainer: Trainer, batches: Batches) -> Turn:
    """Returns the measurement of steps on batches that lie on the devices already."""
    return timed_calls(lambda _number: trainer.steps(batches, STEPS_PER_CALL)())


def packing(trainer: Trainer, examples: Examples) -> Turn:
    """Returns the measurement of choosing rows on the host and sending each device its own."""
    order = BatchOrder(len(examples), BATCH_SIZE, seed=0)

    def send(number: int) -> None:
        trainer.send(*order.stack(examples, number * STEPS_PER_CALL, STEPS_PER_CALL))

    return timed_calls(send)


def collectives_of_a_step(trainer: Trainer, plan: Plan, batches: Batches) -> list[Collective]:
    """Returns the collectives that are seen when the trainer takes one step."""

    def step() -> Any:
        batch = tf.gather(batches.inputs, 0), tf.gather(batches.labels, 0)
        loss, hits, updates = trainer._train_on_batch(*batch)  # what its compiled loop repeats
        write(updates)
        return loss, hits

    return collectives(step, mesh=plan.mesh, combine=True)


def exchanges(trainer: Trainer, plan: Plan, wanted: Sequence[Collective]) -> Turn:
    """Returns the measurement of a step's collectives, each of which waits for the one before.

    Raises:
        RuntimeError: TensorFlow makes other collectives of the function.
    """
    mesh = plan.mesh
    place = OnMesh(Plan("exchanges", mesh, {name: name for name in mesh.names}))
    shapes = shapes_of_sums(trainer.model, plan, wanted)
    parts = [
        [place.send(summands(each, shape), (*each.mesh_dims, *map(str, range(len(shape))))) for shape in sums]
        for each, sums in zip(wanted, shapes, strict=True)
    ]

    def exchange(carried: Any) -> Any:
        for each, tensors in zip(wanted, parts, strict=True):
            over = list(range(len(each.mesh_dims)))
            sums = [tf.reshape(tf.reduce_sum(part + carried, over), [-1]) for part in tensors]
            carried = 1e-9 * tf.add_n([tf.gather(each_sum, 0) for each_sum in sums])
        return carried

    zero = place.send(np.zeros((), np.float32), ())
    seen = collectives(exchange, zero, mesh=mesh, combine=True)
    if list(map(str, seen)) != list(map(str, wanted)):
        raise RuntimeError(f"Wanted: {', '.join(map(str, wanted))}. Seen: {', '.join(map(str, seen))}.")
    count = place.send(np.array(STEPS_PER_CALL, np.int16), ())
    compiled = Compiled(
        lambda count, zero: repeated(count, lambda _turn, carried: (exchange(carried),), zero)[0],
        combine_all_reduces=True,
    )
    return timed_calls(lambda _number: place.fetch(compiled(count, zero)))


def shapes_of_sums(model: MLP, plan: Plan, wanted: Sequence[Collective]) -> list[list[tuple[int, ...]]]:
    """Returns the shapes of the sums in each collective: of several in that of the gradients, the largest.

    Loss and hits are summed together with the gradients: all are copied into one array, and out of it.
    """
    spec = model.spec
    shapes = spec.shapes(model.sizes)
    gradients = [plan.layout(spec.variables[name].axes).local_shape(shapes[name]) for name in model.trained]
    largest = max(wanted, key=lambda each: each.payload_bytes)
    return [[(), (), *gradients] if each is largest else [(each.payload_bytes // 4,)] for each in wanted]


def summands(collective: Collective, shape: Sequence[int]) -> Any:
    """Returns an array whose sum over the mesh dimensions of an all-reduce has this shape."""
    return np.ones((*map(collective.mesh.dim_size, collective.mesh_dims), *shape), np.float32)


def main() -> None:
    """Prints the parts, and how much of a step they explain."""
    for scheme, parts in measure().items():
        for name, value in parts.items():
            told = f"{1000 * value:,.2f} ms" if isinstance(value, float) else f"{value:,}"
            print(f"{scheme} parallel, {name:15} {told:>12}")
        print(f"explained: {(parts['share'] + parts['exchanges']) / parts['step']:.2f} of a step")


if __name__ == "__main__":
    main()
