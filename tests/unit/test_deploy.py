"""The manifests and batch scripts of deploy/: valid by the schemas, and of one mind about names and ports."""

import argparse
import copy
import importlib
import itertools
import re
import subprocess
import tomllib
from pathlib import Path

import jsonschema
import kubernetes_validate
import pytest
import yaml

from lessons.lesson_11_many_processes.cluster_spec import ClusterSpec
from lessons.lesson_11_many_processes.programs import multi_worker, places
from tests import manifests
from tests.manifests import DEPLOY, ROOT, only_container, pod_templates

TFJOB = ROOT / "tests" / "fixtures" / "kubeflow" / "kubeflow.org_tfjobs.yaml"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MANIFESTS = [
    pytest.param(document, id=f"{path.stem}-{document['kind']}")
    for path in manifests.MANIFESTS
    for document in manifests.documents(path)
]
WITH_PODS = [each for each in MANIFESTS if pod_templates(each.values[0])]
TFJOBS = [each for each in MANIFESTS if each.values[0]["kind"] == "TFJob"]
JOBS = [each for each in MANIFESTS if each.values[0]["kind"] == "Job"]
INDEXED = {
    path.stem: manifests.documents(path) for path in manifests.MANIFESTS if path.stem.startswith("job-")
}
SCRIPTS = sorted((DEPLOY / "slurm").glob("*.sbatch"))
# Of Slurm's manual of sbatch: the options that our scripts use, with the form of their values.
SBATCH = {
    "job-name": r"[a-z_]+",
    "nodes": r"\d+",
    "ntasks": r"\d+",
    "ntasks-per-node": r"\d+",
    "cpus-per-task": r"\d+",
    "mem": r"\d+G",
    "mem-per-cpu": r"\d+G",
    "time": r"\d\d:\d\d:\d\d",
    "signal": r"TERM@\d+",
    "output": r"[a-z_]+-%j\.log",
    "open-mode": "append",  # else a requeued job begins its log anew
    "requeue": None,
    "gpus-per-node": r"\d+",
}


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
def tfjob():
    definition = next(yaml.load_all(TFJOB.read_text(), Loader=LOADER))
    (version,) = definition["spec"]["versions"]
    schema = strict(version["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object"}
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture
def validate(tfjob):
    def check(document):
        if document["kind"] == "TFJob":
            tfjob.validate(document)
        else:
            kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)

    return check


@pytest.mark.parametrize("document", MANIFESTS)
def test_a_manifest_is_valid(document, validate):
    validate(document)


@pytest.mark.parametrize("document", MANIFESTS)
def test_a_field_that_does_not_exist_is_refused(document, validate):
    wrong = copy.deepcopy(document)
    wrong["spec"]["replicass"] = 2
    with pytest.raises((jsonschema.ValidationError, kubernetes_validate.ValidationError)):
        validate(wrong)


@pytest.mark.parametrize("document", TFJOBS)
def test_a_wrong_field_deep_in_a_pod_is_refused(document, validate):
    for job in pod_templates(document):
        wrong = copy.deepcopy(document)
        container = only_container(pod_templates(wrong)[job])
        container["volumeMount"] = container.pop("volumeMounts")
        with pytest.raises(jsonschema.ValidationError):
            validate(wrong)


@pytest.mark.parametrize("document", TFJOBS)
def test_the_operator_finds_the_container_and_its_port(document):
    for template in pod_templates(document).values():
        container = only_container(template)
        assert container["name"] == "tensorflow"
        assert [port["name"] for port in container["ports"]] == ["tfjob-port"]


@pytest.mark.parametrize("name", INDEXED)
def test_the_service_gives_the_pods_of_the_job_their_names(name):
    service, job = INDEXED[name]
    assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"batch.kubernetes.io/job-name": job["metadata"]["name"]}
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True


def addresses(name):
    """The addresses that Kubernetes gives the pods of an Indexed Job, by its documentation."""
    service, job = INDEXED[name]
    (port,) = service["spec"]["ports"]
    container = only_container(job["spec"]["template"])
    assert port["port"] == container["ports"][0]["containerPort"]
    return [
        f"{job['metadata']['name']}-{index}.{service['metadata']['name']}:{port['port']}"
        for index in range(job["spec"]["completions"])
    ]


@pytest.mark.parametrize("name", INDEXED)
def test_all_pods_of_an_indexed_job_run_at_once(name):
    spec = INDEXED[name][1]["spec"]
    assert spec["completionMode"] == "Indexed"
    assert spec["completions"] == spec["parallelism"] == 2


def test_tf_config_of_plain_kubernetes_names_the_pods():
    found = manifests.variables_of(DEPLOY / "kubernetes" / "job-multi-worker.yaml")
    cluster = ClusterSpec({"worker": addresses("job-multi-worker")})
    assert [ClusterSpec.from_tf_config(each["TF_CONFIG"]) for _job, _index, each in found] == [
        cluster.place("worker 0"),
        cluster.place("worker 1"),
    ]


def test_the_variables_of_dtensor_name_the_pods():
    found = manifests.variables_of(DEPLOY / "kubernetes" / "job-multi-client.yaml")
    peers = [places.clients_of(each, 8) for _job, _index, each in found]
    assert [each.name for each in peers] == ["worker 0", "worker 1"]
    assert [list(each.addresses.values()) for each in peers] == [addresses("job-multi-client")] * 2


def test_tf_config_of_the_operator_makes_two_workers():
    found = manifests.variables_of(DEPLOY / "kubernetes" / "tfjob-multi-worker.yaml")
    peers = [places.workers_of(each) for _job, _index, each in found]
    assert [each.name for each in peers] == ["worker 0", "worker 1"]
    assert [each.saves for each in peers] == [True, False]
    assert list(peers[0].addresses.values()) == [
        "multi-worker-worker-0.team-a.svc:2222",
        "multi-worker-worker-1.team-a.svc:2222",
    ]


def test_tf_config_of_the_operator_makes_a_coordinator_workers_and_a_server():
    found = manifests.variables_of(DEPLOY / "kubernetes" / "tfjob-parameter-server.yaml")
    tasks = [str(places.server_place_of(each).task) for _job, _index, each in found]
    assert sorted(tasks) == ["chief 0", "ps 0", "worker 0", "worker 1"]


@pytest.mark.parametrize("document", WITH_PODS)
def test_a_pod_has_the_volumes_that_it_mounts_and_its_checkpoints_lie_in_one(document):
    (claim,) = manifests.documents(DEPLOY / "kubernetes" / "checkpoints.yaml")
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    for template in pod_templates(document).values():
        (volume,) = template["spec"]["volumes"]
        (mount,) = only_container(template)["volumeMounts"]
        assert mount["name"] == volume["name"]
        assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
        assert checkpoints_of(template).is_relative_to(mount["mountPath"])


def checkpoints_of(template):
    words = only_container(template)["args"]
    return Path(words[words.index("--checkpoints") + 1])


def test_no_two_programs_share_a_folder_of_checkpoints():
    found = {
        (only_container(template)["command"][-1], checkpoints_of(template))
        for each in WITH_PODS
        for template in pod_templates(each.values[0]).values()
    }
    assert len(found) == len({folder for _program, folder in found}) == 3


@pytest.mark.parametrize("document", WITH_PODS)
def test_no_pod_needs_root_and_the_image_has_its_user(document):
    """What Kubernetes' pod security standard "restricted" asks for."""
    image = (DEPLOY / "Dockerfile").read_text()
    for template in pod_templates(document).values():
        pod, container = template["spec"]["securityContext"], only_container(template)["securityContext"]
        assert pod["runAsNonRoot"] is True
        assert f"\nUSER {pod['runAsUser']}\n" in image
        assert f"--uid {pod['runAsUser']} " in image
        assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@pytest.mark.parametrize("document", WITH_PODS)
def test_a_pod_that_saves_on_sigterm_has_a_minute_and_the_others_are_not_waited_for(document):
    for template in pod_templates(document).values():
        saves = only_container(template)["command"][-1] == multi_worker.__name__
        assert template["spec"]["terminationGracePeriodSeconds"] == (60 if saves else 5)


@pytest.mark.parametrize("document", JOBS)
def test_a_disrupted_or_saved_pod_is_replaced_uncounted_and_only_when_it_has_ended(document):
    spec = document["spec"]
    assert spec["template"]["spec"]["restartPolicy"] == "Never"  # else there may be no podFailurePolicy
    assert spec["podReplacementPolicy"] == "Failed"  # the only one beside podFailurePolicy
    disrupted, *saved = spec["podFailurePolicy"]["rules"]
    assert disrupted == {
        "action": "Ignore",
        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
    }
    container = only_container(spec["template"])
    if container["command"][-1] == multi_worker.__name__:
        status = multi_worker.ENDED_TO_GO_ON
        codes = {"containerName": container["name"], "operator": "In", "values": [status]}
        assert saved == [{"action": "Ignore", "onExitCodes": codes}]
    else:
        assert not saved


@pytest.mark.parametrize("document", TFJOBS)
def test_the_operator_allows_several_accidents_and_no_proxy_is_added(document):
    """It adds up the restarts of all containers, and gives up when they reach the limit (pkg/core/job.go)."""
    accidents = 3
    assert document["spec"]["runPolicy"]["backoffLimit"] > 2 * accidents
    for template in pod_templates(document).values():
        assert template["metadata"]["annotations"] == {"sidecar.istio.io/inject": "false"}


GPU_LINE = re.compile(r"^( +)# (nvidia\.com/gpu: .*|- \{name: shared-memory.*)$", re.MULTILINE)


@pytest.mark.parametrize("name", ["job-multi-worker", "tfjob-multi-worker"])
def test_with_the_lines_for_gpus_a_manifest_is_valid(name, validate):
    text, count = GPU_LINE.subn(r"\1\2", (DEPLOY / "kubernetes" / f"{name}.yaml").read_text())
    assert count == 3
    document = list(yaml.safe_load_all(text))[-1]
    validate(document)
    template = pod_templates(document)["worker"]
    assert only_container(template)["resources"]["limits"]["nvidia.com/gpu"] == "4"
    assert {each["name"] for each in only_container(template)["volumeMounts"]} == {
        each["name"] for each in template["spec"]["volumes"]
    }


def test_the_image_is_made_of_what_the_package_needs():
    image = (DEPLOY / "Dockerfile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    copied = [word for line in image.splitlines() if line.startswith("COPY") for word in line.split()[1:-1]]
    assert {"pyproject.toml", project["readme"], *project["license-files"], "course_lib"} <= set(copied)
    assert all((ROOT / word).exists() for word in copied)
    (tensorflow,) = (each for each in project["dependencies"] if each.startswith("tensorflow>"))
    assert f'"tensorflow[and-cuda]{tensorflow.removeprefix("tensorflow")}"' in image
    (python,) = re.findall(r"^FROM python:(3\.\d+)-slim$", image, re.MULTILINE)
    least, above = re.findall(r"3\.\d+", project["requires-python"])
    assert minor(least) <= minor(python) < minor(above)


def minor(version):
    return int(version.split(".")[1])


def test_every_file_that_the_lesson_names_exists():
    text = (ROOT / "notebooks" / "source" / "11_many_processes.py").read_text()
    named = set(re.findall(r"`([a-z_-]+\.(?:yaml|sbatch))`", text))
    assert named
    assert named <= {each.name for each in DEPLOY.rglob("*")}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_batch_script_is_bash_with_slurms_options(script):
    subprocess.run(["bash", "-n", script], check=True)
    options = re.findall(r"^#SBATCH --([a-z-]+)(?:=(\S+))?$", script.read_text(), re.MULTILINE)
    assert len(options) == script.read_text().count("\n#SBATCH")
    for name, value in options:
        form = SBATCH[name]
        assert (value == "") if form is None else re.fullmatch(form, value), (name, value)


FAKE_SRUN = """\
#!/usr/bin/env bash
printf '%s\\n' "$@"
"""


def run_script(script, folder, srun=FAKE_SRUN, **variables):
    """Runs a batch script with stand-ins for srun and scontrol."""
    for name, text in {"srun": srun, "scontrol": '#!/usr/bin/env bash\necho "scontrol $*"\n'}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    slurms = {"SLURM_JOB_ID": "123456", "SLURM_CPUS_PER_TASK": "4"}
    return subprocess.run(
        ["bash", script],
        env={"PATH": f"{folder}:/usr/bin:/bin", **slurms, **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_batch_script_has_srun_start_its_program(script, tmp_path):
    answer = run_script(script, tmp_path, COURSE_STEPS="7", COURSE_PYTHON="my python", COURSE_PORT="2222")
    assert answer.returncode == 0, answer.stderr
    words = answer.stdout.splitlines()
    options = words[: words.index("my python")]
    assert "--cpus-per-task=4" in options  # since Slurm 22.05 srun does not take it from sbatch
    assert (
        "--kill-on-bad-exit=0" in options
    )  # else the first status 75 kills those that are about to give theirs
    command = words[words.index("my python") :]
    assert command[:5] == [
        "my python",
        "-m",
        "lessons.lesson_11_many_processes.programs.slurm",
        "--port",
        "2222",
    ]
    program = command[command.index("my python", 1) :]
    assert program == [
        *["my python", "-m", f"lessons.lesson_11_many_processes.programs.{script.stem}", "--steps", "7"],
        *["--checkpoints", f"{tmp_path}/checkpoints/{script.stem}", "--wait", "600"],
    ]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
@pytest.mark.parametrize(
    ("status", "requeued"), [(0, False), (1, False), (75, True), (137, False), (143, True)]
)
def test_what_sigterm_ended_is_requeued(script, status, requeued, tmp_path):
    answer = run_script(script, tmp_path, f"#!/usr/bin/env bash\nexit {status}\n")
    assert (answer.returncode, answer.stdout) == (status, "scontrol requeue 123456\n" if requeued else "")


def test_the_job_of_a_coordinator_that_ended_well_is_done_whatever_ends_the_others(tmp_path):
    """Slurm kills who is left when --wait is over, and srun answers 128 and the signal."""
    runs_it = """\
#!/usr/bin/env bash
while [[ $1 == --* ]]; do shift; done
"$@" || echo "coordinator: $?"
exit 137
"""
    (script,) = (each for each in SCRIPTS if each.stem == "parameter_server")
    folders = {name: tmp_path / name for name in ("true", "false")}
    answers = {}
    for name, folder in folders.items():
        folder.mkdir()
        answers[name] = run_script(script, folder, runs_it, COURSE_PYTHON=name, COURSE_CHECKPOINTS="kept")
    assert (answers["true"].returncode, answers["true"].stdout) == (0, "")
    assert (answers["false"].returncode, answers["false"].stdout) == (137, "coordinator: 1\n")
    assert not any(list((folder / "kept").iterdir()) for folder in folders.values())


def test_jobs_that_share_a_machine_get_ports_of_their_own(tmp_path):
    (script,) = (each for each in SCRIPTS if each.stem == "parameter_server")  # four processes, four ports
    ports = []
    for job in ("1", "2", "4999", "5000", "98765432"):
        words = run_script(script, tmp_path, SLURM_JOB_ID=job).stdout.splitlines()
        ports.append(int(words[words.index("--port") + 1]))
    assert all(abs(one - other) >= 4 for one, other in itertools.combinations(ports, 2))
    assert min(ports) >= 1024
    assert max(ports) + 3 < 32_768  # where the ports begin that Linux gives out by itself


@pytest.mark.parametrize("document", WITH_PODS)
def test_a_program_takes_the_arguments_of_its_manifest(document, monkeypatch):
    for template in pod_templates(document).values():
        container = only_container(template)
        python, option, program = container["command"]
        assert (python, option) == ("python", "-m")
        assert program in {f"lessons.lesson_11_many_processes.programs.{script.stem}" for script in SCRIPTS}
        taken = arguments_of(importlib.import_module(program), container["args"], monkeypatch)
        assert (taken.steps, taken.wait) == (200, 600)


def arguments_of(program, words, monkeypatch):
    """What the program's own parser makes of a command line."""
    taken = []
    parse = argparse.ArgumentParser.parse_args
    monkeypatch.setattr("sys.argv", [program.__name__, *words])

    def parse_and_stop(parser, *given):
        taken.append(parse(parser, *given))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", parse_and_stop)
        with pytest.raises(KeyboardInterrupt):
            program.main()
    return taken[-1]
