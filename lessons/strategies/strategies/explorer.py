"""The strategy explorer: say what you have, and see the strategy, what lives where, and the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from course_lib.errors import CourseError
from course_lib.i18n import _, later
from course_lib.pictures.shapes import Node
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Choice, Group, State
from course_lib.widgets.listings import listings
from lessons.strategies.boxes import Box, Line, Scheme, boxes_of, scheme_image
from lessons.strategies.strategies import strategy as specs
from lessons.strategies.strategies.code import sections_of
from lessons.strategies.strategies.strategy import Situation

_SEVERAL = 2  # what is drawn where there are several
_BATCHES = 3  # how far into the palette the colours of batches begin


class StrategyExplorer(Explorer):
    """Asks the reader a few questions, and shows the strategy that suits the answers."""

    name = "strategy"
    title = later("Which strategy?")

    def __init__(self) -> None:
        super().__init__(asdict(Situation(specs.GPUS)))

    def controls(self, state: State) -> Sequence[Group]:
        """Returns the questions; where variables are is asked only where there is a choice."""
        has_choice = specs.has_choice_of_variables(**state)
        return [
            Group(heading, [Choice((name,), list(answers.items()))])
            for name, (heading, answers) in _questions().items()
            if name != "variables" or has_choice
        ]

    def settled(self, state: State) -> State:
        """Returns the state, with variables on each device where there is no choice."""
        if specs.has_choice_of_variables(**state):
            return state
        return {**state, "variables": specs.MIRRORED_VARIABLES}

    def body(self, state: State) -> Sequence[Node]:
        """Returns the strategy, why, what lives where, and the program; or why there is none."""
        try:
            situation = Situation(**state)
        except CourseError as error:
            return [pieces.refusal(error)]
        warning, scheme = situation.warning, scheme_of(situation)
        is_as_asked = situation.advised_loop == situation.loop
        program = _("The program") if is_as_asked else _("The program, with a custom loop")
        return [
            pieces.facts({_("Strategy"): situation.strategy}),
            pieces.spoken("told", situation.rule),
            *([pieces.spoken("verdict", warning)] if warning else []),
            pieces.panel(_("What lives where"), scheme_image(scheme), _legend(scheme)),
            listings(program, {"TensorFlow": sections_of(situation)}),
        ]


def _questions() -> dict[str, tuple[str, dict[Any, str]]]:
    """Returns what is asked, by what it decides: the question, and the text of each answer."""
    devices = {specs.CPU: "CPU", specs.GPU: _("one GPU"), specs.GPUS: _("several GPUs"), specs.TPU: "TPU"}
    places = {specs.MIRRORED_VARIABLES: _("on each GPU"), specs.CENTRAL_VARIABLES: _("on the CPU")}
    return {
        "devices": (_("Devices of a machine"), devices),
        "several_machines": (_("Machines"), {False: _("one"), True: _("several")}),
        "synchronous": (_("Updates"), {True: _("synchronous"), False: _("asynchronous")}),
        "variables": (_("Variables"), places),
        "loop": (_("Written with"), {specs.FIT: "fit", specs.CUSTOM_LOOP: _("a custom loop")}),
        "keras": (_("Keras"), {specs.KERAS_3: "Keras 3", specs.TF_KERAS: "tf_keras"}),
    }


def scheme_of(situation: Situation) -> Scheme:
    """Returns where variables, gradients and batches live under the strategy that suits a situation.

    Where there are several machines or devices it has two of each.

    >>> for box in boxes_of(scheme_of(Situation("GPUs"))):
    ...     print(box.text())
    GPU:0: all variables (a copy), gradients of its part, batch, part 1 of 2
    GPU:1: all variables (a copy), gradients of its part, batch, part 2 of 2

    Source: https://www.tensorflow.org/guide/distributed_training
    """
    special = {specs.CENTRAL_STORAGE: _central, specs.PARAMETER_SERVER: _served}
    return special.get(situation.strategy, _synchronous)(situation)


def _synchronous(situation: Situation) -> Scheme:
    devices, machines = _devices(situation), _SEVERAL if situation.several_machines else 1
    count = len(devices) * machines
    if count == 1:
        alone = Line(_("all variables"), 0), Line(_("gradients")), Line(_("a batch"), _BATCHES)
        return [[Box(devices[0], alone)]]
    names = [_name(situation, machine, device) for machine in range(machines) for device in devices]
    copy = Line(_("all variables (a copy)"), 0)
    boxes = [Box(name, (copy, *_part(at, count))) for at, name in enumerate(names)]
    in_a_row = len(devices) if len(devices) > 1 else count
    rows = [boxes[at : at + in_a_row] for at in range(0, count, in_a_row)]
    return [*rows, _("All-reduce: the gradients are added up, and every copy gets the same update.")]


def _central(situation: Situation) -> Scheme:
    cpu = Box("CPU:0", (Line(_("all variables"), 0), Line(_("sum of the gradients"))))
    devices = _devices(situation)
    boxes = [Box(device, _part(at, len(devices))) for at, device in enumerate(devices)]
    return [[cpu], _("Gradients go up, are added up and applied once; values come down."), boxes]


def _served(situation: Situation) -> Scheme:
    coordinator = Box(_in_process(_("coordinator"), "CPU:0"), (Line(_("list of steps to do")),))
    servers = [
        Box(
            _in_process(_("parameter server {index}", index=at), "CPU:0"),
            (Line(_("variables, part {part} of {count}", part=at + 1, count=_SEVERAL), at),),
        )
        for at in range(_SEVERAL)
    ]
    workers = [
        Box(
            _in_process(_("worker {index}", index=at), " + ".join(_devices(situation))),
            (Line(_("gradients")), Line(batch, _BATCHES + at)),
        )
        for at, batch in enumerate([_("a batch"), _("another batch")])
    ]
    exchange = _("Values come down; gradients go up and are applied as soon as a worker has them.")
    return [[coordinator, *servers], exchange, workers]


def _part(at: int, count: int) -> tuple[Line, Line]:
    """Returns what each of several replicas holds of a step: its gradients, and its part of the batch."""
    batch = _("batch, part {part} of {count}", part=at + 1, count=count)
    return Line(_("gradients of its part"), waits=True), Line(batch, _BATCHES + at)


def _name(situation: Situation, machine: int, device: str) -> str:
    if not situation.several_machines:
        return device
    is_host = situation.devices == specs.TPU
    process = _("host {index}", index=machine) if is_host else _("worker {index}", index=machine)
    return _in_process(process, device)


def _in_process(process: str, device: str) -> str:
    return _("{process}, {device}", process=process, device=device)


def _devices(situation: Situation) -> list[str]:
    several = situation.devices in (specs.GPUS, specs.TPU)
    kind = "GPU" if situation.devices == specs.GPUS else situation.devices
    return [f"{kind}:{number}" for number in range(_SEVERAL if several else 1)]


def _legend(scheme: Scheme) -> list[str]:
    """Returns how the picture is to be read."""
    lines = [line for box in boxes_of(scheme) for line in box.lines]
    data = [line.data for line in lines if line.data is not None]
    notes = {
        _("Where there are several, the picture shows two."): len(boxes_of(scheme)) > 1,
        _("The same color means the same data."): len(set(data)) < len(data),
        _("Stripes mark a partial sum that waits to be added."): any(line.waits for line in lines),
    }
    return [note for note, applies in notes.items() if applies]
