"""The manifests and batch scripts of deploy/: valid by the schemas, and of one mind about names and ports.

`tests/drill/test_slurm.py` runs the batch scripts.
"""

import importlib
import os
import re
import tomllib
from unittest.mock import patch

import jsonschema
import kubernetes_validate
import pytest
import yaml

from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec
from lessons.lesson_11_many_processes.programs import multi_client, multi_worker
from tests import manifests
from tests.manifests import DEPLOY, ROOT, only_container, pod_templates

TFJOB = ROOT / "tests" / "fixtures" / "kubeflow" / "kubeflow.org_tfjobs.yaml"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DOCUMENTS = [
    pytest.param(document, id=f"{path.stem}-{document['kind']}")
    for path in manifests.MANIFESTS
    for document in manifests.documents(path)
]
WITH_PODS = [parameter for parameter in DOCUMENTS if pod_templates(parameter.values[0])]
WORKERS, CLIENTS = (DEPLOY / "kubernetes" / f"job-multi-{who}.yaml" for who in ("worker", "client"))
GPU_LINE = re.compile(r"^( +)# (nvidia\.com/gpu: .*|- \{name: shared-memory.*)$", re.MULTILINE)


def strict(schema):
    """Refuses fields that the schema does not name: a cluster would drop them without a word."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    tightened = {name: strict(each) for name, each in schema.items()}
    if isinstance(tightened.get("properties"), dict) and "additionalProperties" not in tightened:
        tightened["additionalProperties"] = False
    if tightened.pop("x-kubernetes-int-or-string", False):
        tightened.pop("anyOf", None)
        tightened["type"] = ["integer", "string"]
    return tightened


@pytest.fixture(scope="module")
def validate():
    definition = next(yaml.load_all(TFJOB.read_text(), Loader=LOADER))
    (version,) = definition["spec"]["versions"]
    schema = strict(version["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object"}
    tfjob = jsonschema.Draft202012Validator(schema)

    def check(document):
        if document["kind"] == "TFJob":
            tfjob.validate(document)
        else:
            kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)

    return check


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_manifest_is_valid_and_a_field_that_does_not_exist_is_refused(document, validate):
    validate(document)
    with pytest.raises((jsonschema.ValidationError, kubernetes_validate.ValidationError)):
        validate({**document, "spec": {**document["spec"], "replicass": 2}})


@pytest.mark.parametrize("name", ["job-multi-worker", "tfjob-multi-worker"])
def test_with_the_lines_for_gpus_a_manifest_is_valid(name, validate):
    text, count = GPU_LINE.subn(r"\1\2", (DEPLOY / "kubernetes" / f"{name}.yaml").read_text())
    assert count == 3
    validate(list(yaml.safe_load_all(text))[-1])


def addresses(path):
    """The addresses that Kubernetes gives the pods of an Indexed Job, by its documentation."""
    service, job = manifests.documents(path)
    (port,) = service["spec"]["ports"]
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == 2  # all run at once
    assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    return [
        f"{job['metadata']['name']}-{index}.{service['metadata']['name']}:{port['port']}" for index in (0, 1)
    ]


def places_told(path, place_of):
    """Returns what the processes of a manifest make of their variables."""
    places = []
    for _job, _index, variables in manifests.variables_of(path):
        with patch.dict(os.environ, variables):
            places.append(place_of())
    return places


def test_plain_kubernetes_tells_the_pods_their_places():
    for path, place_of in (
        (WORKERS, multi_worker.place_of_worker),
        (CLIENTS, multi_client.place_of_client),
    ):
        cluster = ClusterSpec({"worker": addresses(path)})
        assert places_told(path, place_of) == [cluster.place("worker 0"), cluster.place("worker 1")]


@pytest.mark.parametrize(
    ("program", "tasks"),
    [
        ("multi-worker", ["worker 0", "worker 1"]),
        ("parameter-server", ["chief 0", "ps 0", "worker 0", "worker 1"]),
    ],
)
def test_the_operator_tells_the_pods_their_places(program, tasks):
    path = DEPLOY / "kubernetes" / f"tfjob-{program}.yaml"
    assert sorted(str(place.task) for place in places_told(path, multi_worker.place_of_worker)) == tasks


@pytest.mark.parametrize("document", WITH_PODS)
def test_a_pod_runs_its_program_and_saves_where_all_see_it(document, monkeypatch):
    (claim,) = manifests.documents(DEPLOY / "kubernetes" / "checkpoints.yaml")
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    for template in pod_templates(document).values():
        container = only_container(template)
        program = container["command"][-1]
        monkeypatch.setattr("sys.argv", [program, *container["args"]])
        arguments = importlib.import_module(program).parsed()
        (volume,), (mount,) = template["spec"]["volumes"], container["volumeMounts"]
        assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
        assert arguments.checkpoints.startswith(mount["mountPath"] + "/")
        saves_on_sigterm = program == multi_worker.__name__
        assert template["spec"]["terminationGracePeriodSeconds"] == (60 if saves_on_sigterm else 5)


def test_a_pod_that_saved_on_sigterm_is_replaced_uncounted():
    spec = manifests.documents(WORKERS)[1]["spec"]
    codes = [rule.get("onExitCodes", {}).get("values") for rule in spec["podFailurePolicy"]["rules"]]
    assert codes == [None, [multi_worker.ENDED_TO_GO_ON]]


def test_the_image_is_made_of_what_the_package_needs():
    image = (DEPLOY / "Dockerfile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    copied = [word for line in image.splitlines() if line.startswith("COPY") for word in line.split()[1:-1]]
    assert {"pyproject.toml", project["readme"], *project["license-files"], "course_lib"} <= set(copied)
    assert all((ROOT / word).exists() for word in copied)
    (tensorflow,) = (each for each in project["dependencies"] if each.startswith("tensorflow>"))
    assert f'"tensorflow[and-cuda]{tensorflow.removeprefix("tensorflow")}"' in image
