"""Checkpoints that clients of a mesh write together, the clients stood in for by threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from course_lib import CourseError
from course_lib.runtime import start_tensorflow
from course_lib.training.checkpoints import CheckpointFolder
from course_lib.training.saved import whole_in
from lessons.lesson_11_many_processes import client_checkpoints
from lessons.lesson_11_many_processes.client_checkpoints import ClientCheckpoints

tf = start_tensorflow()
LIMIT_SECONDS = 30  # who waits longer waits for somebody who never comes


@pytest.fixture
def clients(tmp_path, monkeypatch):
    """Two clients that wait for each other as on a mesh; each writes a shard of its own."""
    barrier = threading.Barrier(2)
    monkeypatch.setattr(client_checkpoints.dtensor, "barrier", lambda *_: barrier.wait(LIMIT_SECONDS))

    def write_shard(self, folder, _content):
        folder.mkdir(exist_ok=True)  # so does TensorFlow
        (folder / f"shard-{self._writes_names:d}").write_text("values")

    monkeypatch.setattr(CheckpointFolder, "_write", write_shard)
    return [ClientCheckpoints(tmp_path, None, writes_names=first) for first in (True, False)]


def together(clients, act):
    with ThreadPoolExecutor(2) as threads:
        return [each.result() for each in [threads.submit(act, client) for client in clients]]


@pytest.mark.parametrize("prepared", [True, False])
def test_clients_agree_on_names_also_where_one_does_not_see_the_others_checkpoints_yet(
    clients, prepared, tmp_path, monkeypatch
):
    """A file system over a network shows other machines what is new up to a minute later."""
    monkeypatch.setattr(clients[1], "names", lambda: ())
    if prepared:
        together(clients, lambda client: client.prepare())
    expected = [f"checkpoint-00000{number}-step-00000{number}" for number in (1, 2)]
    for step, name in enumerate(expected, 1):
        assert together(clients, lambda client, step=step: client.save(step, {})) == [name, name]
    assert sorted(path.name for path in tmp_path.iterdir()) == expected
    for saved in whole_in(tmp_path):
        assert {path.name for path in saved.path.glob("shard-*")} == {"shard-0", "shard-1"}
    assert len(whole_in(tmp_path)) == 2


def test_the_count_goes_on_from_what_is_there(clients, tmp_path):
    (tmp_path / "checkpoint-000007-step-000003").mkdir()  # damaged, too
    assert together(clients, lambda client: client.save(4, {})) == ["checkpoint-000008-step-000004"] * 2


def test_a_disk_that_refuses_another_clients_shards_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(client_checkpoints.dtensor, "barrier", lambda *_: None)
    (tmp_path / "unfinished-checkpoint-000001-step-000001").write_text("no folder can be made here")
    other = ClientCheckpoints(tmp_path, None, writes_names=False)
    with pytest.raises(CourseError, match="No checkpoint can be written to"):
        other.save(1, {}, v=tf.Variable(1.0))
