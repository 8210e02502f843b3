"""examples/deploy: manifests by the schemas of Kubernetes, and the contents of the image."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import robocache as rbc

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "deploy"
ROOT = FOLDER.parents[1]

# The fields of KubeRay's ray.io/v1 that a manifest may have; its pods have schemas of their own.
RAYJOB = {
    "entrypoint": str,
    "runtimeEnvYAML": str,
    "submissionMode": str,
    "shutdownAfterJobFinishes": bool,
    "ttlSecondsAfterFinished": int,
    "activeDeadlineSeconds": int,
    "backoffLimit": int,
    "suspend": bool,
    "rayClusterSpec": dict,
}
CLUSTER = {
    "rayVersion": str,
    "enableInTreeAutoscaling": bool,
    "headGroupSpec": dict,
    "workerGroupSpecs": list,
}
HEAD = {"rayStartParams": dict, "serviceType": str, "template": dict}
WORKERS = {
    "groupName": str,
    "replicas": int,
    "minReplicas": int,
    "maxReplicas": int,
    "numOfHosts": int,
    "rayStartParams": dict,
    "template": dict,
}


@pytest.fixture(scope="module")
def kubernetes():
    return pytest.importorskip("kubernetes_validate")


def manifest(name):
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((FOLDER / name).read_text())


def fields(given, known, required):
    for name, value in given.items():
        assert name in known, f"{name}: expected one of {sorted(known)}"
        assert type(value) is known[name], f"{name}: is {value!r}"
    assert not set(required) - set(given)


def templates_of(rayjob):
    """The pods of a RayJob, whose fields have to be those that KubeRay knows."""
    fields(rayjob, {"apiVersion": str, "kind": str, "metadata": dict, "spec": dict}, ["spec"])
    assert (rayjob["apiVersion"], rayjob["kind"]) == ("ray.io/v1", "RayJob")
    fields(rayjob["spec"], RAYJOB, ["entrypoint", "rayClusterSpec"])
    cluster = rayjob["spec"]["rayClusterSpec"]
    fields(cluster, CLUSTER, ["rayVersion", "headGroupSpec"])
    fields(cluster["headGroupSpec"], HEAD, ["rayStartParams", "template"])
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for group in cluster["workerGroupSpecs"]:
        fields(group, WORKERS, ["groupName", "minReplicas", "maxReplicas", "template"])
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    for group in groups:  # what `ray start` takes: strings
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
    return [group["template"] for group in groups]


def as_pod(template):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}}
    return {**pod, **template, "metadata": {"name": "pod", **template.get("metadata", {})}}


def versions(kubernetes):
    newest = kubernetes.latest_version().split(".")[:2]
    return ["1.28", ".".join(newest)]


def test_the_job_fits_its_schema(kubernetes):
    for version in versions(kubernetes):
        kubernetes.validate(manifest("job.yaml"), version, strict=True)


def test_the_rayjob_fits_its_schema(kubernetes):
    pods = [as_pod(template) for template in templates_of(manifest("rayjob.yaml"))]
    assert len(pods) == 2
    for version in versions(kubernetes):
        for pod in pods:
            kubernetes.validate(pod, version, strict=True)


def test_what_does_not_fit_is_named(kubernetes):
    """So that the tests above can fail."""
    job = manifest("job.yaml")
    job["spec"]["template"]["spec"]["containers"][0]["resource"] = {}
    with pytest.raises(kubernetes.ValidationError):
        kubernetes.validate(job, versions(kubernetes)[0], strict=True)
    rayjob = manifest("rayjob.yaml")
    rayjob["spec"]["rayClusterSpec"]["workerGroupSpec"] = []
    with pytest.raises(AssertionError, match="workerGroupSpec: expected one of"):
        templates_of(rayjob)


@pytest.mark.parametrize("name", ["job.yaml", "rayjob.yaml"])
def test_pods_take_no_privileges(name):
    given = manifest(name)
    pods = [given["spec"]["template"]] if name == "job.yaml" else templates_of(given)
    for pod in pods:
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
        for container in pod["spec"]["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
            assert container["image"] == f"robocache:{rbc.__version__}"


def test_the_image_is_pinned_and_not_of_root():
    lines = (FOLDER / "Dockerfile").read_text().splitlines()
    images = [line.split("=", 1)[1] for line in lines if line.startswith("ARG PYTHON_IMAGE=")]
    assert len(images) == 1 and re.fullmatch(r"python:\d+\.\d+\.\d+-slim-bookworm", images[0])
    stages = [line.split() for line in lines if line.startswith("FROM ")]
    assert len(stages) >= 3
    assert {stage[1] for stage in stages} == {"${PYTHON_IMAGE}", "scratch", "wheel-${WHEEL}"}
    assert [line for line in lines if line.startswith("USER ")] == ["USER 1000:1000"]
    required = (FOLDER / "requirements.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[\w.\[\],-]+==[\w.]+", line) for line in required[1:])
    ray = next(line.partition("==")[2] for line in required if line.startswith("ray["))
    assert manifest("rayjob.yaml")["spec"]["rayClusterSpec"]["rayVersion"] == ray


def test_what_the_image_copies_is_there():
    copied = re.findall(r"^COPY (examples\S+) ", (FOLDER / "Dockerfile").read_text(), re.M)
    assert copied and all((ROOT / path).is_file() for path in copied)
    entry = manifest("rayjob.yaml")["spec"]["entrypoint"].split()[1]
    assert (FOLDER / Path(entry).name).is_file()
