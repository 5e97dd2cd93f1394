"""The TF_CONFIG builder: its choices, what it shows, its mistakes, its table for pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.course import from_lesson
from tests.explored import choose, pieces, questions, shown, text_of

labels = from_lesson("workers.cluster_mistakes", "labels")
figure = from_lesson("workers.cluster_picture", "figure")
Place, Task = from_lesson("workers.cluster_spec", "Place", "Task")
ClusterExplorer, spread = from_lesson("workers.explorer", "ClusterExplorer", "spread")


def config(explorer) -> dict:
    (text,) = shown(explorer, "listing")
    return json.loads(text)


def test_the_first_view_is_the_example_of_the_lesson():
    explorer = ClusterExplorer()
    assert config(explorer) == {
        "cluster": {
            "chief": ["host0:12345"],
            "worker": ["host1:12345", "host2:12345", "host3:12345"],
            "ps": ["host4:12345", "host5:12345"],
        },
        "task": {"type": "worker", "index": 1},
    }
    assert len(list(pieces(explorer.view, "holder"))) == 6
    (marked,) = pieces(explorer.view, "this")
    assert text_of(marked).startswith("worker 1this task")
    assert repr(explorer) == figure(explorer.place).text


def test_the_task_is_the_readers_choice_and_stays_as_long_as_it_is_there():
    explorer = ClusterExplorer(servers=0)
    choose(explorer, "task", "worker 2")
    choose(explorer, "chief", False)
    assert config(explorer)["task"] == {"type": "worker", "index": 2}
    choose(explorer, "workers", 2)
    assert config(explorer)["task"] == {"type": "worker", "index": 0}
    assert "Without a chief, worker 0 does" in shown(explorer, "told")[0]
    choose(explorer, "evaluator", True)
    choose(explorer, "task", "evaluator 0")
    assert config(explorer) == {
        "cluster": {"worker": ["host0:12345", "host1:12345"]},
        "task": {"type": "evaluator", "index": 0},
    }


def test_servers_bring_a_chief_and_nothing_is_asked_of_it():
    explorer = ClusterExplorer(servers=0)
    choose(explorer, "chief", False)
    choose(explorer, "servers", 1)
    assert "chief" in config(explorer)["cluster"]
    assert "Chief" not in questions(explorer)


@pytest.mark.parametrize("mistake", labels())
def test_a_mistake_is_shown_with_what_tensorflow_does(mistake):
    explorer = ClusterExplorer()
    choose(explorer, "mistake", mistake)
    (wrong,), (told,) = (shown(explorer, class_) for class_ in ("listing", "told"))
    assert "TensorFlow 2.21" in told
    right = explorer.place.tf_config
    assert (wrong.split() == spread(right).split()) == (mistake == "port taken")
    choose(explorer, "mistake", "")
    assert config(explorer)["task"] == {"type": "worker", "index": 2}


HOSTS = [f"host{number}:12345" for number in range(9)]
SERVED = {"chief": HOSTS[:1], "worker": HOSTS[1:4], "ps": HOSTS[4:6]}
DRAWN = {
    "alone": Place({"worker": HOSTS[:1]}, Task("worker")),
    "workers": Place({"worker": HOSTS[:2]}, Task("worker", 1)),
    "chief": Place({"chief": HOSTS[:1], "worker": HOSTS[1:3]}, Task("evaluator"), evaluator=True),
    "servers": Place(SERVED, Task("ps", 1), evaluator=True),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_cluster_is_drawn(name):
    text = Path(__file__).with_name("clusters_drawn") / f"{name}.txt"
    assert figure(DRAWN[name]).text.splitlines() == text.read_text().splitlines()
