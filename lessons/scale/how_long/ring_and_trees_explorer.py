"""The explorer of a ring beside two trees: step through an all-reduce of eight devices, round by round."""

from __future__ import annotations

from collections.abc import Sequence

from course_lib.i18n import _, join_sentences, labelled, later
from course_lib.pictures.shapes import Node, node
from course_lib.pictures.text import devices_text
from course_lib.widgets import pieces
from course_lib.widgets.base import Explorer
from course_lib.widgets.controls import Group, Move, State, numbers
from lessons.scale.how_long.chains import Chain, drawing, ring, trees

_LAST = len(ring().rounds)


class RingBesideTrees(Explorer):
    """Lets the reader count the messages that must follow one another in a ring and in two trees."""

    name = "ring_beside_trees"
    title = later("A ring beside two trees, of eight devices")

    def __init__(self) -> None:
        super().__init__({"step": 0})

    def controls(self, state: State) -> Sequence[Group]:
        """Returns the two moves and all rounds."""
        step = state["step"]
        back = Move(("move",), -1, _("← Back"), idle=step == 0)
        forward = Move(("move",), 1, _("Forward →"), idle=step == _LAST)
        return [Group(_("Round"), [numbers(("step",), range(_LAST + 1)), back, forward])]

    def settled(self, state: State) -> State:
        """Returns the state after a move."""
        return {"step": min(max(state["step"] + state.get("move", 0), 0), _LAST)}

    def body(self, state: State) -> Sequence[Node]:
        """Returns the messages in a row so far, and who sends to whom."""
        step, chains = state["step"], [ring(), *trees()]
        panels = [
            pieces.panel(each.title, pieces.images([drawing(each, step)], "\n".join(_heard(each, step))))
            for each in chains
        ]
        counts = {_("Messages in a row, ring"): chains[0], _("Messages in a row, trees"): chains[1]}
        return [
            pieces.facts({name: _count(chain, step) for name, chain in counts.items()}),
            pieces.spoken(
                "told", join_sentences([_of_the_ring(chains[0], step), _of_a_tree(chains[1], step)])
            ),
            pieces.panels(panels),
            node("ul", *(node("li", line) for line in _legend()), class_="notes"),
        ]


def _count(chain: Chain, step: int) -> str:
    return _("{count} of {last}", count=chain.done(step), last=len(chain.rounds))


def _of_the_ring(chain: Chain, step: int) -> str:
    """Returns what happens to the eighth that the picture follows."""
    if step == 0:
        return _("Each device has values of its own, and needs the sum over all eight.")
    ((sender, receiver),) = chain.messages(step)
    ends = {"sender": sender, "receiver": receiver}
    if 2 * step <= len(chain.rounds):
        return _(
            "Ring: device {sender} sends what it has to device {receiver}, which adds its own values.", **ends
        )
    return _("Ring: device {sender} passes the total on to device {receiver}.", **ends)


def _of_a_tree(chain: Chain, step: int) -> str:
    if step == 0:
        return _("Only messages that must follow one another count.")
    if step > len(chain.rounds):
        return _("Trees: all devices have had the total since round {last}.", last=len(chain.rounds))
    if 2 * step <= len(chain.rounds):
        return _("Trees: sums climb towards the root.")
    return _("Trees: the total comes down to the leaves.")


def _heard(chain: Chain, step: int) -> list[str]:
    """Returns who sends to whom, and what each device has."""
    sent = _(", ").join(f"{sender} → {receiver}" for sender, receiver in chain.messages(step))
    has = {
        "own": _("its own values"),
        "sum": _("a sum"),
        "sent": _("its sum went on, it waits"),
        "total": _("the total"),
    }
    holders: dict[str, list[int]] = {}
    for device, state in enumerate(chain.states(step)):
        holders.setdefault(state, []).append(device)
    rows = [labelled(devices_text(devices), has[state]) for state, devices in holders.items()]
    return [*([sent] if sent else []), *rows]


def _legend() -> list[str]:
    return [
        _("Thick arrows: the messages of this round. Stripes: a sum. Full color: the total."),
        _("Dashed: the sum went on, and the device waits for the total."),
        _("Thin arrows: in the ring the other seven eighths move at the same time."),
    ]
