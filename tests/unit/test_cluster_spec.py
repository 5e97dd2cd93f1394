"""What a cluster is, what its tasks are told, its mistakes, and its picture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib import CourseError
from course_lib.i18n import set_language
from lessons.lesson_11_many_processes import cluster_mistakes as mistakes
from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec, Task
from lessons.lesson_11_many_processes.explorer import spread

TEXTS = Path(__file__).with_name("clusters_drawn")
HOSTS = [f"host{number}:12345" for number in range(9)]
TWO = ClusterSpec({"worker": HOSTS[:2]})
# The example of TensorFlow's guide, with the chief that it needs: 3 workers, 2 servers.
SERVED = ClusterSpec({"ps": HOSTS[4:6], "worker": HOSTS[1:4], "chief": HOSTS[:1]})


def test_a_task_is_told_the_cluster_and_its_place():
    assert SERVED.tf_config("worker 1") == (
        '{"cluster": {"chief": ["host0:12345"], "worker": ["host1:12345", "host2:12345", "host3:12345"],'
        ' "ps": ["host4:12345", "host5:12345"]}, "task": {"type": "worker", "index": 1}}'
    )
    assert spread(SERVED.tf_config(Task("ps", 1))).splitlines()[-2:] == [
        '  "task": {"type": "ps", "index": 1}',
        "}",
    ]


def test_a_client_of_dtensor_is_told_the_same_in_variables():
    assert TWO.dtensor_variables("worker 1") == {
        "DTENSOR_CLIENT_ID": "1",
        "DTENSOR_JOBS": "host0:12345,host1:12345",
        "DTENSOR_JOB_NAME": "worker",
    }


@pytest.mark.parametrize(
    ("jobs", "saver", "ending"),
    [
        ({"worker": 2}, "worker 0", ["worker 0", "worker 1"]),
        ({"chief": 1, "worker": 1}, "chief 0", ["chief 0", "worker 0"]),
        ({"chief": 1, "worker": 2, "ps": 1}, "chief 0", ["chief 0"]),
        ({"chief": 1}, "chief 0", ["chief 0"]),
    ],
)
def test_who_saves_and_who_ends_by_itself(jobs, saver, ending):
    rest = iter(HOSTS)
    cluster = ClusterSpec(
        {job: [next(rest) for _ in range(count)] for job, count in jobs.items()}, evaluator=True
    )
    assert str(cluster.saver) == saver
    assert [str(task) for task in cluster.ending] == ending
    assert str(cluster.tasks[-1]) == "evaluator 0"
    assert cluster.place(saver).saves
    assert not cluster.place("evaluator 0").saves


def test_the_evaluator_is_told_of_the_cluster_in_which_it_is_not():
    cluster = ClusterSpec({"worker": HOSTS[:2]}, evaluator=True)
    assert json.loads(cluster.tf_config("evaluator 0")) == {
        "cluster": {"worker": HOSTS[:2]},
        "task": {"type": "evaluator", "index": 0},
    }


counts = st.fixed_dictionaries({"worker": st.integers(1, 4)}, optional={"chief": st.just(1)})


@given(counts, st.integers(0, 3), st.booleans(), st.data())
def test_what_is_written_is_read_back(counts, servers, evaluator, data):
    counts = {**counts, **({"ps": servers, "chief": 1} if servers else {})}
    rest = iter(range(1, 99))
    jobs = {job: [f"10.0.0.{next(rest)}:2222" for _ in range(count)] for job, count in counts.items()}
    cluster = ClusterSpec(jobs, evaluator=evaluator)
    task = data.draw(st.sampled_from(cluster.tasks))
    place = ClusterSpec.from_tf_config(cluster.tf_config(task))
    assert place.task == task
    assert place.cluster.jobs == cluster.jobs
    assert place.tf_config == cluster.tf_config(task)


@pytest.mark.parametrize("address", ["host0:1", "10.0.0.1:65535", "a-b.c_d:80"])
def test_these_are_addresses(address):
    assert ClusterSpec({"worker": [address]}).addresses == {Task("worker"): address}


@pytest.mark.parametrize("address", ["host0", "host0:", ":1", "http://host0:1", "host0:123456"])
def test_these_are_none(address):
    with pytest.raises(CourseError, match="cannot be the address of worker 1") as raised:
        ClusterSpec({"worker": ["host9:1", address]})
    assert raised.value.problem.startswith(repr(address))


@pytest.mark.parametrize(
    ("jobs", "says"),
    [
        ({"master": ["host0:1"]}, "A cluster has no job 'master'"),
        (
            {"worker": ["host0:1", "host1:1", "host0:1"]},
            "worker 0 and worker 2 have the same address, host0:1",
        ),
        ({"chief": ["host0:1"], "worker": ["host0:1"]}, "chief 0 and worker 0 have the same address"),
        ({"chief": ["host0:1", "host1:1"], "worker": ["host2:1"]}, "The cluster has 2 chiefs"),
        ({"worker": ["host0:1"], "ps": ["host1:1"]}, "parameter servers, but no chief"),
        ({"chief": ["host0:1"], "ps": ["host1:1"]}, "parameter servers, but no worker"),
        ({"worker": ["host0:1"], "evaluator": ["host1:1"]}, "The evaluator is among the jobs"),
    ],
)
def test_what_is_no_cluster_is_refused_by_name(jobs, says):
    with pytest.raises(CourseError) as raised:
        ClusterSpec(jobs)
    assert says in raised.value.problem


@pytest.mark.parametrize("task", ["worker 2", "ps 0", "evaluator 0", "worker", Task("chief")])
def test_a_task_that_is_not_there_is_refused_by_name(task):
    with pytest.raises(CourseError, match="Allowed: worker 0, worker 1") as raised:
        TWO.tf_config(task)
    assert str(task) in raised.value.problem


CLUSTER = '{"cluster": {"worker": ["host0:1", "host1:1"]}'


@pytest.mark.parametrize(
    ("text", "problem", "cure"),
    [
        ("{'cluster': {}}", "TF_CONFIG is no JSON (line 1, column 2)", "how Python writes a dictionary"),
        ('{"cluster": {}', "TF_CONFIG is no JSON (line 1, column 15)", "Write it with json.dumps, which"),
        (CLUSTER + ', "task": {"type": "worker", "index": -1}}', "no task 'worker -1'", ""),
        (CLUSTER + ', "task": {"type": "master", "index": 0}}', "no task 'master 0'", ""),
    ],
)
def test_a_wrong_tf_config_is_explained(text, problem, cure):
    with pytest.raises(CourseError) as raised:
        ClusterSpec.from_tf_config(text)
    assert problem in raised.value.problem
    assert cure in raised.value.cure


def test_an_index_in_quotes_is_read_as_tensorflow_reads_it():
    assert ClusterSpec.from_tf_config(CLUSTER + ', "task": {"type": "worker", "index": "1"}}').task.index == 1


# What each mistake is, as a reader would say it: which words of the refusal name it.
NAMED = {
    "one address twice": "worker 0 and worker 2 have the same address, host1:12345",
    "index counted from 1": "no task 'worker 3'",
    "no port": "'host3' cannot be the address of worker 2",
    "two chiefs": "2 chiefs",
    "evaluator inside": "The evaluator is among the jobs",
    "no JSON": "TF_CONFIG is no JSON",
}


@pytest.mark.parametrize("mistake", NAMED)
def test_each_mistake_is_refused_for_what_it_is(mistake):
    with pytest.raises(CourseError) as raised:
        ClusterSpec.from_tf_config(mistakes.mistaken(SERVED, mistake))
    assert NAMED[mistake] in raised.value.problem
    assert "2.21" in mistakes.in_tensorflow(SERVED, mistake)


def test_a_taken_port_is_no_mistake_in_the_text():
    text = mistakes.mistaken(SERVED, mistakes.PORT_TAKEN)
    assert ClusterSpec.from_tf_config(text).task == Task("worker", 2)
    assert set(NAMED) | {mistakes.PORT_TAKEN} == set(mistakes.labels())


# Its picture

DRAWN = {
    "workers": TWO.place("worker 1"),
    "alone": ClusterSpec({"worker": HOSTS[:1]}).place("worker 0"),
    "servers": ClusterSpec(SERVED.jobs, evaluator=True).place("ps 1"),
    "chief": ClusterSpec({"chief": HOSTS[:1], "worker": HOSTS[1:3]}, evaluator=True).place("evaluator 0"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_the_picture_says_this(name):
    assert DRAWN[name].picture().text == (TEXTS / f"{name}.txt").read_text("utf-8").rstrip("\n")


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("name", DRAWN)
def test_every_task_has_a_box_and_one_is_marked(name, language):
    set_language(language)
    svg = DRAWN[name].picture().svg
    assert svg.count('class="holder') == len(DRAWN[name].cluster.tasks)
    assert svg.count('class="holder this"') == 1


def test_how_long_the_others_of_two_at_one_address_wait():
    trained = mistakes.in_tensorflow(ClusterSpec({"worker": ["a:1", "b:1"]}), "one address twice")
    assert trained.endswith("the others wait for an hour.")
    served = mistakes.in_tensorflow(SERVED, "one address twice")
    assert "the chief InvalidArgumentError" in served
    assert served.endswith("the others wait without end.")
