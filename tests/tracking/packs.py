"""Run folders on paper: members whose epochs a test writes itself, and what MLflow shows of them."""

from __future__ import annotations

from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Run

from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.training.member_folder import EpochRecord
from tests.tiny import tiny_config


def paper_pack(place: Path, uri: str, experiment: str, *overrides: str, seeds: int = 2) -> RunFolder:
    """Make the run folder of a pack that nobody trains."""
    tracking = f"tracking={{name: mlflow, uri: '{uri}', experiment: {experiment}}}"
    config = tiny_config(place / "photos", place, f"seeds={list(range(seeds))}", tracking, *overrides)
    return RunFolder.create(config, "none", "abc")


def epoch(number: int) -> EpochRecord:
    return EpochRecord(
        epoch=number,
        step=4 * number,
        time_ms=1_000_000 + number,
        seconds=0.5,
        images_per_second=96.0,
        loss={"total": 3.0 / number},
        lr={"head.decay": 1e-3},
    )


def finish(run: RunFolder, spec: MemberSpec) -> None:
    epochs = run.manifest().config.training.epochs
    values = {"recall_at_1": 0.3}
    run.member(spec).write_result(
        MemberResult(id=spec.id, seed=spec.seed, status="finished", epochs=epochs, best_epoch=epochs, metrics=values)
    )


def shown(uri: str, experiment: str) -> dict[str, list[Run]]:
    """Return the runs of an experiment by their part of the pack."""
    client = MlflowClient(uri)
    found = client.get_experiment_by_name(experiment)
    parts: dict[str, list[Run]] = {}
    for run in client.search_runs([found.experiment_id]) if found else ():
        parts.setdefault(run.data.tags["sfora.key"].partition("/")[2], []).append(run)
    return parts


def history(uri: str, run: Run, key: str = "loss") -> list[tuple[int, int, float]]:
    """Return a curve as it lies on the server: (step, time, value)."""
    points = MlflowClient(uri).get_metric_history(run.info.run_id, key)
    return sorted((point.step, point.timestamp, point.value) for point in points)


def expected(epochs: int) -> list[tuple[int, int, float]]:
    return [(number, 1_000_000 + number, 3.0 / number) for number in range(1, epochs + 1)]
