"""Where a strategy keeps variables, gradients and batches: the devices, and what each holds, in words."""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.i18n import _
from lessons.lesson_09_strategies import strategy as strategies
from lessons.lesson_09_strategies.strategy import Situation

_SEVERAL = 2  # what is drawn where there are several
_BATCHES = 3  # how far into the palette the colours of batches begin


@dataclass(frozen=True)
class Held:
    """What a device holds of one kind.

    Attributes:
        text: what it is.
        data: which data it is: what is equal has equal numbers. None for what has no colour.
        waits: whether it is a partial sum that waits for those of the other devices.
    """

    text: str
    data: int | None = None
    waits: bool = False


@dataclass(frozen=True)
class Holder:
    """A device by its name, with its machine or process where there are several, and what lives there."""

    name: str
    held: tuple[Held, ...]


@dataclass(frozen=True)
class Places:
    """Where everything lives under a strategy.

    Attributes:
        rows: the devices, those with variables for all first, else those of each machine.
        exchange: how gradients become one update of the variables; "" where there is one device.
        between: whether the exchange is one between the first row and the others.
    """

    rows: tuple[tuple[Holder, ...], ...]
    exchange: str
    between: bool = False


def places_of(situation: Situation) -> Places:
    """Returns where variables, gradients and batches live under the strategy that suits a situation.

    Where there are several machines or devices it has two of each.

    >>> for holder in places_of(Situation("GPUs")).rows[0]:
    ...     print(holder.name, [held.text for held in holder.held])
    GPU:0 ['all variables (a copy)', 'gradients of its part', 'batch, part 1 of 2']
    GPU:1 ['all variables (a copy)', 'gradients of its part', 'batch, part 2 of 2']

    Source: https://www.tensorflow.org/guide/distributed_training
    """
    special = {strategies.CENTRAL_STORAGE: _central, strategies.PARAMETER_SERVER: _served}
    return special.get(situation.advice.strategy, _synchronous)(situation)


def _synchronous(situation: Situation) -> Places:
    devices, machines = _devices(situation), _SEVERAL if situation.several_machines else 1
    count = len(devices) * machines
    if count == 1:
        alone = Held(_("all variables"), 0), Held(_("gradients")), Held(_("a batch"), _BATCHES)
        return Places(((Holder(devices[0], alone),),), "")
    names = [_name(situation, machine, device) for machine in range(machines) for device in devices]
    copy = Held(_("all variables (a copy)"), 0)
    holders = [Holder(name, (copy, *_part(at, count))) for at, name in enumerate(names)]
    in_a_row = len(devices) if len(devices) > 1 else count
    rows = tuple(tuple(holders[at : at + in_a_row]) for at in range(0, count, in_a_row))
    return Places(rows, _("All-reduce: the gradients are added up, and every copy gets the same update."))


def _central(situation: Situation) -> Places:
    cpu = Holder("CPU:0", (Held(_("all variables"), 0), Held(_("sum of the gradients"))))
    devices = _devices(situation)
    holders = [Holder(device, _part(at, len(devices))) for at, device in enumerate(devices)]
    exchange = _("Gradients go up, are added up and applied once; values come down.")
    return Places(((cpu,), tuple(holders)), exchange, between=True)


def _served(situation: Situation) -> Places:
    coordinator = Holder(_in_process(_("coordinator"), "CPU:0"), (Held(_("list of steps to do")),))
    servers = [
        Holder(
            _in_process(_("parameter server {index}", index=at), "CPU:0"),
            (Held(_("variables, part {part} of {count}", part=at + 1, count=_SEVERAL), at),),
        )
        for at in range(_SEVERAL)
    ]
    batches = [_("a batch"), _("another batch")]
    workers = [
        Holder(
            _in_process(_("worker {index}", index=at), " + ".join(_devices(situation))),
            (Held(_("gradients")), Held(batch, _BATCHES + at)),
        )
        for at, batch in enumerate(batches)
    ]
    exchange = _("Values come down; gradients go up and are applied as soon as a worker has them.")
    return Places(((coordinator, *servers), tuple(workers)), exchange, between=True)


def _part(at: int, count: int) -> tuple[Held, Held]:
    """Returns what each of several replicas holds of a step: its gradients, and its part of the batch."""
    batch = _("batch, part {part} of {count}", part=at + 1, count=count)
    return Held(_("gradients of its part"), waits=True), Held(batch, _BATCHES + at)


def _name(situation: Situation, machine: int, device: str) -> str:
    if not situation.several_machines:
        return device
    is_host = situation.devices == strategies.TPU
    process = _("host {index}", index=machine) if is_host else _("worker {index}", index=machine)
    return _in_process(process, device)


def _in_process(process: str, device: str) -> str:
    return _("{process}, {device}", process=process, device=device)


def _devices(situation: Situation) -> list[str]:
    several = situation.devices in (strategies.GPUS, strategies.TPU)
    kind = "GPU" if situation.devices == strategies.GPUS else situation.devices
    return [f"{kind}:{number}" for number in range(_SEVERAL if several else 1)]
