"""The TF_CONFIG builder: its choices, what it shows, its mistakes, its table for pages."""

from __future__ import annotations

import json

import pytest

from course_lib import CourseError
from lessons.lesson_11_many_processes.cluster_mistakes import labels
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec
from lessons.lesson_11_many_processes.explorer import ClusterExplorer
from tests.explored import choose, pieces, questions, shown, text_of


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
    assert shown(explorer, "refusal") == []
    assert repr(explorer) == explorer.place.picture().text


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


def test_servers_without_a_chief_are_refused_and_nothing_else_is_asked():
    explorer = ClusterExplorer()
    choose(explorer, "chief", False)
    assert "parameter servers, but no chief" in shown(explorer, "refusal")[0]
    assert "without end" in shown(explorer, "told")[0]
    assert questions(explorer) == ["Workers", "Parameter servers", "Chief"]
    with pytest.raises(CourseError, match="no chief"):
        explorer.figure()
    choose(explorer, "servers", 0)
    assert config(explorer)["task"] == {"type": "worker", "index": 0}


@pytest.mark.parametrize("mistake", labels())
def test_a_mistake_is_shown_with_why_and_with_what_tensorflow_does(mistake):
    explorer = ClusterExplorer()
    choose(explorer, "mistake", mistake)
    (wrong,), (refusal,), (told,) = (shown(explorer, class_) for class_ in ("listing", "refusal", "told"))
    with pytest.raises(CourseError) as raised:
        _ = explorer.place
    assert raised.value.problem in refusal
    assert "TensorFlow 2.21" in told
    if mistake != "port taken":
        with pytest.raises(CourseError) as again:
            ClusterSpec.from_tf_config(wrong)  # what is shown is what is wrong
        assert again.value.cure == raised.value.cure
    choose(explorer, "mistake", "")
    assert config(explorer)["task"] == {"type": "worker", "index": 2}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"workers": 0}, "no worker"),
        ({"task": "worker 3"}, "no task 'worker 3'"),
    ],
)
def test_what_it_cannot_show_is_refused_by_name(wrong, says):
    with pytest.raises(CourseError, match=says):
        ClusterExplorer(**wrong)
