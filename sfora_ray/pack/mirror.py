"""The run folder as a tracker shows it: a parent run, a child for each member and for each fold.

Everything told here is read from the run folder, and runs are found by keys made of the pack's digest; so telling
again, after a crash or to another server, ends with the same runs and the same points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summary import FoldFacts, Summary
from sfora_ray.tracking import MetricPoint, RunStatus, Tracker
from sfora_ray.training.member_folder import EpochRecord


class Mirror:
    """Tells one tracker about one run folder."""

    def __init__(self, run: RunFolder, tracker: Tracker) -> None:
        self._run = run
        self._tracker = tracker
        self._manifest = run.manifest()
        self._runs: dict[str, str] = {}

    def open(self) -> None:
        """Open the parent and one child per member."""
        config = self._manifest.config
        seeds = ", ".join(str(seed) for seed in config.seeds)
        parent = self._open("pack", self._manifest.name, {"sfora.kind": "pack", "sfora.seeds": seeds})
        self._tracker.log_params(parent, flat(config.plain(), leave_out=("seeds",)))
        for spec in self._run.specs():
            tags = {"sfora.kind": "member", "sfora.member": spec.id, "sfora.seed": str(spec.seed)}
            child = self._open(spec.id, f"{self._manifest.name}-{spec.folder_name}", tags)
            self._tracker.log_params(child, {"seed": str(spec.seed), **flat(config.plain(), leave_out=("seeds",))})

    def run_id(self, part: str) -> str:
        """Return the tracker's id of ``pack``, of a member's id, or of ``fold:<name>``."""
        return self._runs[part]

    def follow(self) -> None:
        """Tell the epochs that the tracker does not have yet."""
        for spec in self._run.specs():
            points = [point for record in self._run.member(spec).epochs() for point in _epoch_points(record)]
            if points:
                self._tracker.log_metrics(self._runs[spec.id], points)

    def tell_members(self) -> None:
        """Tell each member's result and end its run."""
        for spec in self._run.specs():
            result = self._run.member(spec).result()
            if result is not None:
                self._tell_member(spec, result)

    def tell_summary(self, summary: Summary, time_ms: int) -> None:
        """Tell what the pack came to: the parent's numbers, and a child run for each fold."""
        parent = self._runs["pack"]
        self._tracker.log_dataset(parent, summary.pack.dataset, summary.pack.dataset_digest, "train and test")
        self._tracker.set_tags(parent, _pack_tags(summary))
        self._tracker.log_metrics(parent, list(_pack_points(summary, time_ms)))
        for fold in summary.folds:
            self._tell_fold(fold, summary, time_ms)

    def tell_files(self) -> None:
        """Store the report, its figures and the records as artifacts of the parent."""
        parent = self._runs["pack"]
        for path in (self._run.manifest_path, self._run.summary_path):
            self._tracker.log_file(parent, path)
        for path in sorted(self._run.report_path.rglob("*")):
            if path.is_file():
                folder = path.parent.relative_to(self._run.path).as_posix()
                self._tracker.log_file(parent, path, folder)

    def close(self, status: RunStatus) -> None:
        """End the parent with ``status``, and each child with its own, or with the parent's where it has none."""
        results = self._run.results()
        for part, run in self._runs.items():
            if part in results:
                self._tracker.close_run(run, _ended(results[part]))
            else:
                self._tracker.close_run(run, "FINISHED" if part.startswith("fold:") else status)

    def _open(self, part: str, name: str, tags: Mapping[str, str]) -> str:
        parent = None if part == "pack" else self._runs["pack"]
        common = {
            "sfora.pack": f"{self._manifest.name}-{self._manifest.digest}",
            "sfora.digest": self._manifest.digest,
            "sfora.selection": self._manifest.config.selection.split,
            **{f"sfora.version.{package}": version for package, version in self._manifest.versions.items()},
        }
        key = f"{self._manifest.name}-{self._manifest.digest}/{part}"
        self._runs[part] = self._tracker.open_run(key, name, parent=parent, tags={**common, **tags})
        return self._runs[part]

    def _tell_member(self, spec: MemberSpec, result: MemberResult) -> None:
        run = self._runs[spec.id]
        tags = {
            "sfora.status": result.status,
            "sfora.reason": result.reason,
            "sfora.device": result.device,
            "sfora.selected_on": result.selected_on or "",
            "sfora.best_epoch": str(result.best_epoch or ""),
            "sfora.warnings": "; ".join(result.warnings),
        }
        self._tracker.set_tags(run, {key: value for key, value in tags.items() if value})
        time_ms = int(self._run.member(spec).result_path.stat().st_mtime * 1000)
        step = result.best_epoch or 0
        self._tracker.log_metrics(run, [MetricPoint(k, v, step, time_ms) for k, v in result.metrics.items()])
        self._tracker.close_run(run, _ended(result))

    def _tell_fold(self, fold: FoldFacts, summary: Summary, time_ms: int) -> None:
        tags = {
            "sfora.kind": "fold",
            "sfora.fold": fold.name,
            "sfora.fitted_on": fold.fitted_on,
            "sfora.dim": str(fold.dim),
            "sfora.upper_bound": str(fold.fitted_on == "test").lower(),
            "sfora.num_members": str(fold.num_members),
        }
        run = self._open(f"fold:{fold.name}", f"{summary.pack.name}-fold-{fold.name}", tags)
        # The step is the number of members, so that the fold of an extended pack adds a point.
        values = {**fold.metrics, "retained": fold.retained, "dim": float(fold.dim)}
        points = [MetricPoint(key, value, fold.num_members, time_ms) for key, value in values.items()]
        self._tracker.log_metrics(run, points)
        self._tracker.close_run(run, "FINISHED")


def flat(values: Mapping[str, Any], leave_out: tuple[str, ...] = ()) -> dict[str, str]:
    """Return nested values as ``a.b.c`` to text; where runs go and what tracks them is left out."""
    hidden = {"output", "tracking", "cache_dir", *leave_out}
    return dict(_leaves("", {key: value for key, value in values.items() if key not in hidden}))


def _leaves(place: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(f"{place}.{key}" if place else str(key), item)
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(f"{place}.{index}", item)
    else:
        yield place, str(value)


def _ended(result: MemberResult) -> RunStatus:
    return "FINISHED" if result.status == "finished" else "FAILED"


def _epoch_points(record: EpochRecord) -> Iterator[MetricPoint]:
    values = {"images_per_second": record.images_per_second, "epoch_seconds": record.seconds}
    values |= {"loss" if name == "total" else f"loss.{name}": value for name, value in record.loss.items()}
    values |= {f"lr.{group}": value for group, value in record.lr.items()}
    values |= {f"state.{name}": value for name, value in record.state.items()}
    for split, metrics in record.metrics.items():
        values |= {f"{split}.{key}": value for key, value in metrics.items()}
    for key, value in values.items():
        yield MetricPoint(key, value, record.epoch, record.time_ms)


def _pack_tags(summary: Summary) -> dict[str, str]:
    pack = summary.pack
    return {
        "sfora.dataset": pack.dataset,
        "sfora.dataset_digest": pack.dataset_digest,
        "sfora.objective": pack.objective,
        "sfora.recipe": pack.recipe,
        "sfora.num_members": str(pack.num_members),
        "sfora.num_planned": str(pack.num_planned),
        "sfora.weights": pack.weights,
    }


def _pack_points(summary: Summary, time_ms: int) -> Iterator[MetricPoint]:
    size = summary.pack.num_members
    for key, spread in summary.single.items():
        low, high = spread.ci95 or (None, None)
        values = {
            "mean": spread.mean,
            "std": spread.std,
            "n": float(spread.n),
            "ci95_lo": low,
            "ci95_hi": high,
        }
        for name, value in values.items():
            if value is not None:
                yield MetricPoint(f"{key}.{name}", value, size, time_ms)
    for point in summary.pack_curve:
        for key, value in point.metrics.items():
            yield MetricPoint(f"pack_curve.{key}", value, point.size, time_ms)
    for fold in summary.folds:
        for key, value in {**fold.metrics, "retained": fold.retained}.items():
            yield MetricPoint(f"fold.{fold.name.replace('+', '_then_')}.{key}", value, size, time_ms)
