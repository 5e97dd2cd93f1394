"""The manifests of deploy/ are valid by Kubernetes's schemas, and tell each pod its place."""

import json
import re
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
PLACES = {"worker": ["worker 0", "worker 1"], "coordinator": ["chief 0", "ps 0", "worker 0", "worker 1"]}


def documents(path):
    return list(yaml.safe_load_all(path.read_text()))


def variables(job, index):
    """As the kubelet fills them in: $(NAME) by what stands before it, the number from the annotation."""
    found = {}
    (container,) = job["spec"]["template"]["spec"]["containers"]
    for variable in container["env"]:
        value = variable.get("value", str(index))
        for name, earlier in found.items():
            value = value.replace(f"$({name})", earlier)
        found[variable["name"]] = value
    return found


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_a_manifest_is_valid(path):
    for document in documents(path):
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("name", ["worker", "client", "coordinator"])
def test_each_pod_is_told_its_place_and_the_names_that_kubernetes_gives(name):
    service, job = documents(DEPLOY / "kubernetes" / f"{name}.yaml")
    count = job["spec"]["completions"]
    assert job["spec"]["parallelism"] == count  # all run at once
    assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"] == name
    expected = [f"{name}-{index}.{name}:2222" for index in range(count)]
    places = []
    for index in range(count):
        found = variables(job, index)
        if name == "client":
            assert found["DTENSOR_JOBS"].split(",") == expected
            assert found["DTENSOR_CLIENT_ID"] == str(index)
            continue
        config = json.loads(found.get("TF_CONFIG") or in_shell(job, found))
        assert sorted(address for job in config["cluster"].values() for address in job) == expected
        places.append(f"{config['task']['type']} {config['task']['index']}")
        assert config["cluster"][config["task"]["type"]][config["task"]["index"]] == expected[index]
    assert places == PLACES.get(name, [])


def in_shell(job, found):
    """Returns TF_CONFIG as the command of a pod sets it, which then starts Python."""
    (container,) = job["spec"]["template"]["spec"]["containers"]
    (text,) = container["args"]
    text = re.sub(r"exec python .*", 'printf "%s" "$TF_CONFIG"', text)
    return subprocess.run(["sh", "-c", text], env=found, capture_output=True, text=True, check=True).stdout


def test_the_image_holds_the_programs_that_the_manifests_start():
    for name in ("worker", "client", "coordinator"):
        text = (DEPLOY / "kubernetes" / f"{name}.yaml").read_text()
        assert f"/programs/{name}.py" in text
        assert (DEPLOY.parent / f"notebooks/plain/{name}.py").exists()
        assert f"notebooks/plain/{name}.py" in (DEPLOY / "Dockerfile").read_text()
