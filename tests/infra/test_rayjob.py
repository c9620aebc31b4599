import json
from typing import Any

import jsonschema
import pytest

from sfora_ray.config.pack import PackConfig
from tests.infra.files import INFRA, is_pinned, load, locked, values_of
from tests.shared import SHARED, needs_shared


@pytest.fixture
def job() -> Any:
    return load("kuberay/rayjob-pack.yaml")


@pytest.fixture
def validator() -> jsonschema.Draft7Validator:
    schema = json.loads((SHARED / "schemas" / "rayjob_v1.json").read_text(encoding="utf-8"))
    return jsonschema.Draft7Validator(schema)


@needs_shared
def test_the_manifest_is_valid(job: Any, validator: jsonschema.Draft7Validator) -> None:
    assert [error.message for error in validator.iter_errors(job)] == []


@needs_shared
@pytest.mark.parametrize("key", ["entrypoints", "rayClusterSpecs"])
def test_the_schema_refuses_an_unknown_field(job: Any, validator: jsonschema.Draft7Validator, key: str) -> None:
    job["spec"][key] = "x"
    assert not validator.is_valid(job)


def groups(job: Any) -> list[Any]:
    cluster = job["spec"]["rayClusterSpec"]
    return [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]


def test_every_image_names_a_version_and_all_are_one(job: Any) -> None:
    images = set(values_of(job, "image"))
    assert len(images) == 1
    assert all(is_pinned(image) for image in images)


def test_the_versions_of_ray_agree(job: Any) -> None:
    dockerfile = (INFRA / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert job["spec"]["rayClusterSpec"]["rayVersion"] == locked("ray")
    assert f"rayproject/ray:{locked('ray')}-py311" in dockerfile


def test_a_worker_asks_for_one_gpu_and_nobody_for_none(job: Any) -> None:
    assert set(values_of(job, "nvidia.com/gpu")) == {"1"}
    head, *workers = groups(job)
    assert not list(values_of(head, "nvidia.com/gpu"))
    for worker in workers:
        assert len(list(values_of(worker, "nvidia.com/gpu"))) == 2
        tolerated = [entry["key"] for entry in worker["template"]["spec"]["tolerations"]]
        assert "nvidia.com/gpu" in tolerated
        assert worker["minReplicas"] == 0 < worker["maxReplicas"]


def test_the_head_runs_drivers_and_nothing_else(job: Any) -> None:
    head = groups(job)[0]["rayStartParams"]
    assert head["num-cpus"] == "0"
    # Ray is given a quoted JSON text, as its own start command would be in a shell.
    assert json.loads(json.loads(head["resources"])) == {"sfora_driver": 64}
    assert json.loads(job["spec"]["entrypointResources"]) == {"sfora_driver": 1}


def test_every_pod_has_shared_memory_shared_storage_and_no_root(job: Any) -> None:
    for group in groups(job):
        pod = group["template"]["spec"]
        (container,) = pod["containers"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
        assert mounts["/dev/shm"]["emptyDir"]["medium"] == "Memory"
        assert "persistentVolumeClaim" in mounts["/data"]
        assert "persistentVolumeClaim" in mounts["/runs"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert pod["terminationGracePeriodSeconds"] >= 60


def test_the_job_ends_and_leaves_time_to_close(job: Any) -> None:
    assert job["spec"]["shutdownAfterJobFinishes"] is True
    assert job["spec"]["rayClusterSpec"]["authOptions"] == {"mode": "token"}
    settings = {entry["name"]: entry for entry in groups(job)[0]["template"]["spec"]["containers"][0]["env"]}
    assert int(settings["RAY_JOB_STOP_WAIT_TIME_S"]["value"]) >= 60
    for name, entry in settings.items():
        if "PASSWORD" in name or "TOKEN" in name:
            assert "secretKeyRef" in entry["valueFrom"]
            assert "value" not in entry


def test_every_override_of_the_entrypoint_is_a_field_of_the_configuration(job: Any) -> None:
    words = job["spec"]["entrypoint"].split()
    assert words[:7] == [
        "cd",
        "/opt/sfora_ray",
        "&&",
        "exec",
        "python",
        "jobs/train_pack.py",
        "configs/cub/herd.yaml",
    ]
    overrides = [word for word in words if "=" in word]
    assert {override.split(".")[0].split("=")[0] for override in overrides} <= set(PackConfig.model_fields)


def test_claims_are_shared_by_all_nodes() -> None:
    text = (INFRA / "kuberay" / "storage.yaml").read_text(encoding="utf-8")
    assert text.count("kind: PersistentVolumeClaim") == text.count("accessModes: [ReadWriteMany]") == 2
