"""Run folders of the tiny configuration, and its YAML file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml

from sfora_ray.config.pack import PackConfig
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.status import MemberView
from sfora_ray.pack.summary import Summary
from sfora_ray.training.boundary import member_result
from sfora_ray.training.preflight import preflight
from sfora_ray.training.worker import Worker
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.run_pack import run_pack

PANDAS_OF_MLFLOW = "Operation with range is deprecated"
"""A warning of pandas that MLflow causes when it saves an input example."""


def write_config(path: Path, values: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return path


def train_here(config: PackConfig) -> RunFolder:
    """Make the run folder of a pack and train its members in this process, one after the other."""
    run = RunFolder.create(config, preflight(config).weights)
    for spec in run.specs():
        member_result(spec, run.member(spec).path, Worker.alone(torch.device("cpu")))
    return run


@dataclass(frozen=True)
class Tracked:
    """A finished pack, where its MLflow runs are, and what was seen on the way."""

    run: RunFolder
    summary: Summary
    uri: str
    seen: list[list[MemberView]]
    said: list[str]


def run_tracked(config: PackConfig, uri: str) -> Tracked:
    """Run a pack with local members."""
    seen: list[list[MemberView]] = []
    said: list[str] = []

    def watch(views: Sequence[MemberView]) -> None:
        seen.append(list(views))

    run, summary = run_pack(config, Launcher(local=True), watch=watch, say=said.append)
    return Tracked(run, summary, uri, seen, said)
