"""Where a strategy keeps variables, gradients and batches: the devices, and what each holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lessons.lesson_09_strategies import strategy as strategies
from lessons.lesson_09_strategies.strategy import Situation

VARIABLES, GRADIENTS, GRADIENT_SUM, BATCH, STEPS = (
    "variables",
    "gradients",
    "sum of gradients",
    "batch",
    "steps",
)
MACHINE, SERVER, WORKER, COORDINATOR, HOST = "machine", "server", "worker", "coordinator", "host"
ALL_REDUCE, TO_THE_CPU, TO_THE_SERVERS = "all-reduce", "to the CPU", "to the servers"
_SEVERAL = 2  # what is drawn where there are several


@dataclass(frozen=True)
class Held:
    """What a device holds of one kind.

    Attributes:
        kind: variables, gradients, their sum, a batch, or which steps are done.
        part: which part of the whole; equal parts are equal data.
        num_parts: of how many; 1 for the whole.
        copies: on how many devices the same is.
        waits: whether it is a partial sum that waits for those of the other devices.
    """

    kind: str
    part: int = 0
    num_parts: int = 1
    copies: int = 1
    waits: bool = False


@dataclass(frozen=True)
class Holder:
    """A device, and what lives there.

    Attributes:
        role: of the process it belongs to: a machine, a server, a worker, the coordinator, a host with TPUs.
        index: which of these.
        device: its name there.
        held: what it holds.
    """

    role: str
    index: int
    device: str
    held: tuple[Held, ...]


@dataclass(frozen=True)
class Places:
    """Where everything lives under a strategy.

    Attributes:
        rows: the devices, those with variables for all first, else those of each machine.
        exchange: how gradients become one update: "all-reduce", "to the CPU", "to the servers", or nothing.
    """

    rows: tuple[tuple[Holder, ...], ...]
    exchange: str = ""


def places_of(situation: Situation) -> Places:
    """Returns where variables, gradients and batches live under the strategy that suits a situation.

    Where there are several machines or devices it has two of each.

    >>> for holder in places_of(Situation("GPUs")).rows[0]:
    ...     print(holder.device, [(held.kind, held.part, held.num_parts) for held in holder.held])
    GPU:0 [('variables', 0, 1), ('gradients', 0, 1), ('batch', 0, 2)]
    GPU:1 [('variables', 0, 1), ('gradients', 1, 1), ('batch', 1, 2)]

    Source: https://www.tensorflow.org/guide/distributed_training
    """
    return _MAKERS[situation.advice.strategy](situation)


def _alone(situation: Situation) -> Places:
    held = (Held(VARIABLES), Held(GRADIENTS), Held(BATCH))
    (name,) = _devices(situation)
    return Places(((Holder(MACHINE, 0, name, held),),))


def _mirrored(situation: Situation) -> Places:
    role = HOST if situation.devices == strategies.TPU else WORKER
    role = role if situation.several_machines else MACHINE
    homes = [(machine, device) for machine in range(_machines(situation)) for device in _devices(situation)]
    count = len(homes)
    holders = [
        Holder(
            role,
            machine,
            device,
            (Held(VARIABLES, copies=count), Held(GRADIENTS, at, waits=True), Held(BATCH, at, count)),
        )
        for at, (machine, device) in enumerate(homes)
    ]
    in_a_row = len(_devices(situation)) if len(_devices(situation)) > 1 else count
    rows = (tuple(holders[at : at + in_a_row]) for at in range(0, count, in_a_row))
    return Places(tuple(rows), ALL_REDUCE)


def _central(situation: Situation) -> Places:
    cpu = Holder(MACHINE, 0, "CPU:0", (Held(VARIABLES), Held(GRADIENT_SUM)))
    devices = _devices(situation)
    holders = [
        Holder(MACHINE, 0, device, (Held(GRADIENTS, at, waits=True), Held(BATCH, at, len(devices))))
        for at, device in enumerate(devices)
    ]
    return Places(((cpu,), tuple(holders)), TO_THE_CPU)


def _served(situation: Situation) -> Places:
    coordinator = Holder(COORDINATOR, 0, "CPU:0", (Held(STEPS),))
    servers = [Holder(SERVER, at, "CPU:0", (Held(VARIABLES, at, _SEVERAL),)) for at in range(_SEVERAL)]
    workers = [
        Holder(WORKER, at, " + ".join(_devices(situation)), (Held(GRADIENTS, at), Held(BATCH, at)))
        for at in range(_SEVERAL)
    ]
    return Places(((coordinator, *servers), tuple(workers)), TO_THE_SERVERS)


def _devices(situation: Situation) -> list[str]:
    several = situation.devices in (strategies.GPUS, strategies.TPU)
    kind = "GPU" if situation.devices == strategies.GPUS else situation.devices
    return [f"{kind}:{number}" for number in range(_SEVERAL if several else 1)]


def _machines(situation: Situation) -> int:
    return _SEVERAL if situation.several_machines else 1


_MAKERS: dict[str, Callable[[Situation], Places]] = {
    strategies.DEFAULT: _alone,
    strategies.ONE_DEVICE: _alone,
    strategies.MIRRORED: _mirrored,
    strategies.CENTRAL_STORAGE: _central,
    strategies.MULTI_WORKER: _mirrored,
    strategies.PARAMETER_SERVER: _served,
    strategies.TPU_STRATEGY: _mirrored,
}
