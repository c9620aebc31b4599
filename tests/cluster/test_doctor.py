"""The doctor on a cluster whose two GPUs are only logical and which has no dashboard."""

from pathlib import Path

import pytest

from sfora_ray.cluster.capacity import all_resources
from sfora_ray.cluster.held import held_after_all
from sfora_ray.workflows.doctor import doctor
from tests.tiny import tiny_config

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("cluster")]


def test_what_is_wrong_with_the_cluster_is_told_and_all_else_is_well(images: Path, tmp_path: Path) -> None:
    config = tiny_config(images, tmp_path, "resources.gpus_per_worker=1")
    findings = {finding.area: finding for finding in doctor(config, say=lambda _: None)}
    assert findings["GPUs"].level == "red"
    assert "Ray schedules 2, torch sees none" in findings["GPUs"].found
    assert findings["State API"].level == "yellow"
    assert "ray[default]" in findings["State API"].advice
    assert findings["Ray token"].level == "yellow"
    for area in ("Ray", "nodes", "members", "shared output", "output", "data set", "weights"):
        assert findings[area].level == "green", findings[area]
    assert "1 node(s), 5 CPU, 2 GPU" in findings["Ray"].found
    assert findings["members"].found == "2 at a time"
    assert not (tmp_path / "runs").exists()
    # The cluster that was there before stays, with nothing held.
    assert all_resources()["CPU"] == 5
    assert held_after_all() == []


def test_a_member_that_never_fits_is_red(images: Path, tmp_path: Path) -> None:
    config = tiny_config(images, tmp_path, "resources.cpus_per_worker=64")
    findings = {finding.area: finding for finding in doctor(config, say=lambda _: None)}
    assert findings["members"].level == "red"
    assert "64 CPU" in findings["members"].found
    assert findings["members"].advice
