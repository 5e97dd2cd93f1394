"""The TF_CONFIG builder: choose the tasks of a cluster, and see who talks with whom and what each is told."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from course_lib.i18n import _, join_sentences, later
from course_lib.pictures import shapes
from course_lib.pictures.shapes import Node
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Choice, Group, State, numbers
from course_lib.widgets.listings import listing
from lessons.strategies.boxes import Box, Line, Scheme, scheme_image
from lessons.strategies.cluster_spec import CHIEF, EVALUATOR, PS, WORKER, Place
from lessons.strategies.workers import cluster_mistakes as mistakes

NO_MISTAKE = ""
_COLOURS = {CHIEF: 1, WORKER: 0, PS: 2, EVALUATOR: 7}  # a job has a colour, and its name says the same


class ClusterExplorer(Explorer):
    """Lets the reader choose the tasks of a cluster, and shows TF_CONFIG for each, or what a mistake does.

    Args:
        workers: how many workers there are first, from 1 to 3.
        servers: how many parameter servers, up to 2; with them there is a chief.
        task: the task whose TF_CONFIG is shown first.
        chief: whether there is a chief without parameter servers, too.
    """

    name = "cluster"
    title = later("TF_CONFIG builder")

    def __init__(
        self, workers: int = 3, servers: int = 2, task: str = "worker 1", *, chief: bool = True
    ) -> None:
        counts = {"workers": workers, "servers": servers, "chief": chief, "evaluator": False}
        super().__init__({**counts, "task": task, "mistake": NO_MISTAKE})

    def controls(self, state: State) -> Sequence[Group]:
        """Returns the numbers of tasks, which of them is shown, and the mistakes."""
        yes_or_no = [(True, _("yes")), (False, _("no"))]
        wrong = [(NO_MISTAKE, _("no mistake")), *mistakes.labels().items()]
        groups = [
            Group(_("Workers"), [numbers(("workers",), range(1, 4))]),
            Group(_("Parameter servers"), [numbers(("servers",), range(3))]),
        ]
        if not state["servers"]:  # which need a chief
            groups.append(Group(_("Chief"), [Choice(("chief",), yes_or_no)]))
        groups.append(Group(_("Mistake"), [Choice(("mistake",), wrong)]))
        if state["mistake"]:
            return groups
        tasks = [(task, task) for task in _place(state).tasks]
        # Behind the mistakes, which else would move away from under the pointer and lose the focus.
        groups.append(Group(_("Evaluator"), [Choice(("evaluator",), yes_or_no)]))
        groups.append(Group(_("This task"), [Choice(("task",), tasks)]))
        return groups

    def settled(self, state: State) -> State:
        """Returns the state with a task that there is; where there is a mistake, the last worker."""
        state = {**state, "chief": state["chief"] or state["servers"] > 0}
        if state["mistake"]:
            return {**state, "evaluator": False, "task": f"{WORKER} {state['workers'] - 1}"}
        tasks = _place(state).tasks
        return {**state, "task": state["task"] if state["task"] in tasks else tasks[0]}

    def body(self, state: State) -> Sequence[Node]:
        """Returns the picture and TF_CONFIG; or a mistake in it, and what TensorFlow does with that."""
        place, heading = _place(state), _("TF_CONFIG of {task}", task=state["task"])
        if state["mistake"]:
            ends = pieces.spoken("told", mistakes.in_tensorflow(place, state["mistake"]))
            return [listing(heading, spread(mistakes.mistaken(place, state["mistake"]))), ends]
        told = [_("`cluster` is the same for every task; only `task` differs.")]
        if CHIEF not in place.jobs:
            told.append(_("Without a chief, worker 0 does what the chief would."))
        return [
            pieces.spoken("told", join_sentences(told)),
            pieces.panel(_title(place), scheme_image(_scheme_of(place))),
            listing(heading, spread(place.tf_config)),
        ]


def spread(text: str) -> str:
    """Returns a TF_CONFIG over several lines, one for each job; what is no JSON stays as it is.

    >>> print(spread('{"cluster": {"worker": ["host0:12345"]}, "task": {"type": "worker", "index": 0}}'))
    {
      "cluster": {
        "worker": ["host0:12345"]
      },
      "task": {"type": "worker", "index": 0}
    }
    """
    try:
        config = json.loads(text)
    except json.JSONDecodeError:
        return text
    jobs = ",\n".join(f'    "{job}": {json.dumps(addresses)}' for job, addresses in config["cluster"].items())
    return f'{{\n  "cluster": {{\n{jobs}\n  }},\n  "task": {json.dumps(config["task"])}\n}}'


def _place(state: State) -> Place:
    """Returns the cluster that was chosen, each task on a machine of its own."""
    counts = {CHIEF: int(state["chief"]), WORKER: state["workers"], PS: state["servers"]}
    addresses = iter(f"host{number}:12345" for number in range(sum(counts.values())))
    jobs = {job: [next(addresses) for _task in range(count)] for job, count in counts.items() if count}
    return Place(jobs, state["task"], state["evaluator"])


def _title(place: Place) -> str:
    """Returns how many tasks of each job there are.

    >>> _title(Place({"worker": ["host0:12345", "host1:12345"]}, "worker 0"))
    'Cluster: 2 × worker'
    """
    counts = Counter(task.split()[0] for task in place.tasks)
    told = [_("{count} × {job}", count=count, job=job) for job, count in counts.items()]
    return _("Cluster: {jobs}", jobs=_(", ").join(told))


def _scheme_of(place: Place) -> Scheme:
    """Returns the tasks row by row: those that exchange with each other in one, those that serve below."""
    boxes = {task: _box(place, task) for task in place.tasks}
    chief, workers, servers, evaluator = (
        [box for task, box in boxes.items() if task.startswith(job)] for job in (CHIEF, WORKER, PS, EVALUATOR)
    )
    scheme: list[list[Box] | str] = [[*chief, *workers]]
    if PS in place.jobs:
        steps = _("The chief tells the workers which steps to do; the variables are on the servers.")
        values = _("Workers get values from the servers and send gradients; none waits for another.")
        scheme = [chief, steps, workers, values, servers]
    elif len(place.addresses) > 1:
        exchange = _("All-reduce: in each step all send each other their gradients, and all wait for all.")
        scheme.append(exchange)
    if evaluator:
        reads = _(
            "The evaluator reads the checkpoints that {saver} writes; it talks with nobody.",
            saver=place.saver,
        )
        scheme += [reads, evaluator]
    return scheme


def _box(place: Place, task: str) -> Box:
    job, index = task.split()
    texts = [place.addresses.get(task, _("without an address")), *_roles(place, job, int(index))]
    note = _("this task") if task == place.task else ""
    return Box(task, tuple(map(Line, texts)), shapes.PALETTE[_COLOURS[job]], note)


def _roles(place: Place, job: str, index: int) -> list[str]:
    saves = {CHIEF: _("saves checkpoints"), WORKER: _("saves checkpoints, as chief")}
    if job == PS:
        part, count = index + 1, len(place.jobs[PS])
        if count == 1:
            return [_("all variables")]
        return [_("variables, part {part} of {count}", part=part, count=count)]
    if job == EVALUATOR:
        return [_("evaluates checkpoints")]
    if PS in place.jobs:
        return [_("coordinates"), saves[CHIEF]] if job == CHIEF else [_("computes gradients")]
    return [_("trains"), *([saves[job]] if f"{job} {index}" == place.saver else [])]
