"""Parameter servers in processes of their own: a worker dies and comes back, a server dies."""

import re
import signal
from itertools import takewhile

import pytest

from tests.drill.processes import processes

WORKERS = ["worker 0", "worker 1"]


def tasks(servers):
    return {"chief": 1, "worker": 2, "ps": servers}


@pytest.mark.drill
def test_a_worker_is_killed_and_comes_back_and_no_step_is_lost():
    with processes("parameter_server", tasks(2), "--steps", 10_000, "--pause", 0.05) as running:
        running.wait_for("chief 0", "step 5 ")
        running.cluster.kill("worker 1")
        running.wait_for("chief 0", "worker 1 no longer answers")
        running.cluster.restart("worker 1")
        running.wait_for("chief 0", "worker 1 answers again")
        came = running.told("chief 0").index("worker 1 answers again")
        running.wait_until("chief 0", lambda told: any("worker 1 took" in line for line in told[came:]))
        running.cluster.kill("worker 0")  # from now on worker 1 does all
        running.wait_for("chief 0", "worker 0 no longer answers")
        last = max(running.losses("chief 0")) + 15
        next_epoch = f"step {last + 5} "
        running.wait_for("chief 0", next_epoch)
        told = list(takewhile(lambda line: not line.startswith(next_epoch), running.told("chief 0")))
        assert running.told("worker 1") == ["worker 1 serves", "(started again)", "worker 1 serves"]
    assert told[:5] == [
        "hidden_weight part 0 of 2 [392, 32] on ps 0",
        "hidden_weight part 1 of 2 [392, 32] on ps 1",
        "hidden_bias [32] on ps 0",
        "logits_weight [32, 10] on ps 1",
        "logits_bias [10] on ps 0",
    ]
    text = "\n".join(told)
    losses = {int(step): float(loss) for step, loss in re.findall(r"step (\d+) loss (\S+)", text)}
    assert list(losses) == list(range(5, last + 1, 5))
    updates = [int(number) for number in re.findall(r"the servers count (\d+) updates", text)]
    assert len(updates) == len(losses)
    assert min(updates) == 5  # TensorFlow may take a step again whose worker died; it leaves none out
    assert losses[last] < losses[5]


@pytest.mark.drill
def test_a_lost_server_ends_the_training_which_then_goes_on(tmp_path):
    arguments = ("--pause", 0.1, "--checkpoints", tmp_path)
    with processes("parameter_server", tasks(1), "--steps", 400, *arguments) as running:
        running.wait_for("chief 0", "saved after 10 steps")
        running.cluster.kill("ps 0")
        assert running.wait("chief 0") == [1], running.report()
        told, last = running.told("chief 0"), max(running.losses("chief 0"))
    assert told[-3] == "error: ps 0 no longer answers."
    with processes("parameter_server", tasks(1), "--steps", last + 5, *arguments) as running:
        assert running.wait("chief 0") == [0], running.report()
        told = running.told("chief 0")
        assert running.went_on_after("chief 0") in (last - 5, last)  # lost before or after the checkpoint
        assert told[-1] == f"{last + 5} of {last + 5} steps done"


@pytest.mark.drill
def test_who_never_comes_is_named():
    nobody = {name: None for name in ("ps 0", *WORKERS)}
    with processes("parameter_server", tasks(1), "--wait", 1, others=nobody) as running:
        assert running.wait("chief 0") == [1], running.report()
        assert running.told("chief 0")[0] == "error: Not there in time: worker 0, worker 1, ps 0."


LISTENS = """
import json, os, socket, time
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
port = int(config["cluster"][task["type"]][task["index"]].rpartition(":")[2])
server = socket.create_server(("", port), reuse_port=True)
print("course: listens", flush=True)
time.sleep(3600)
"""


@pytest.mark.drill_all
def test_a_coordinator_does_not_wait_without_end_for_a_program_that_is_no_server(tmp_path):
    """Its port answers, so that all seem to be there."""
    script = tmp_path / "listens.py"
    script.write_text(LISTENS)
    with processes("parameter_server", tasks(1), "--start", 8, others={"ps 0": [script]}) as running:
        assert running.wait("chief 0") == [-signal.SIGKILL], running.report()
        expected = "error: TensorFlow waits in vain for worker 0, worker 1, ps 0."
        assert running.told("chief 0")[-3] == expected
