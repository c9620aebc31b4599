"""The sweep folder as a tracker shows it: a parent run, and a child for each trial.

Everything told here is read from the sweep folder, and runs are found by keys made of the sweep's digest; so telling
again, after a crash or to another server, ends with the same runs and the same points. Each child that has ended has
the same parameters, one for every searched path, and the metric ``score``: views that lay several trials side by side
need nothing else. What a scheduler changes while a trial runs is told as metrics ``tried.<path>``, for parameters are
written once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from sfora_ray.errors import InputError, TrackerError
from sfora_ray.pack.mirror import HEARTBEAT_TAG, REASON_TAG, SECONDS_BETWEEN_BEATS, mark_of, now_text
from sfora_ray.sweep.ending import SWEEP, ended, key_prefix
from sfora_ray.sweep.folder import SweepFolder, TrialFolder
from sfora_ray.sweep.ranking import ranking
from sfora_ray.sweep.told import (
    end_points,
    end_tags,
    member_tags,
    ranking_points,
    ranking_tags,
    round_points,
    sweep_params,
    trial_params,
)
from sfora_ray.tracking import RunStatus, Tracker


class SweepMirror:
    """Tells one tracker about one sweep folder.

    Attributes:
        busy: held by the thread that tells; all but :meth:`beat` needs it where there are several.
    """

    def __init__(self, sweep: SweepFolder, tracker: Tracker) -> None:
        self.busy = threading.Lock()
        self._sweep = sweep
        self._tracker = tracker
        self._manifest = sweep.manifest()
        self._config = self._manifest.config
        self._metric = self._config.selection.metric
        self._runs: dict[str, str] = {}
        self._told: dict[Path, tuple[int, int]] = {}
        self._last_beat = 0.0

    def check(self) -> None:
        """Prove that the tracker answers; raises ``TrackerError`` if it does not."""
        self._tracker.check()

    def open(self) -> None:
        """Open the parent and one child per trial, whatever was opened before; everything will be told again."""
        self._runs.clear()
        self._told.clear()
        for _ in self._opened():
            pass

    def turn(self) -> Iterator[None]:
        """Open what is not open yet and tell what is new; it may be left after every run told."""
        if SWEEP not in self._runs:
            self._tracker.check()
        yield from self._opened()
        yield from self._trials_told()

    def follow(self) -> None:
        """Tell the trials' epochs and ends that the tracker does not have yet."""
        for _ in self._trials_told():
            pass

    def run_id(self, part: str) -> str:
        """Return the tracker's id of ``sweep`` or of a trial such as ``t007``."""
        return self._runs[part]

    def beat(self) -> None:
        """Tell, every half a minute at most, that the driver lives."""
        parent = self._runs.get(SWEEP)
        if parent is not None and time.monotonic() - self._last_beat >= SECONDS_BETWEEN_BEATS:
            self._tracker.set_tags(parent, {HEARTBEAT_TAG: now_text()})
            self._last_beat = time.monotonic()

    def tell_ranking(self) -> None:
        """Tell the parent which trial is best, and store ranking, best configuration and report as its artifacts."""
        parent, found = self._runs[SWEEP], ranking(self._sweep)
        self._tracker.log_metrics(parent, list(ranking_points(found, self._time_of_ranking())))
        self._tracker.set_tags(parent, ranking_tags(found))
        for path in (self._sweep.manifest_path, self._sweep.ranking_path, self._sweep.best_path):
            if path.is_file():
                self._tracker.log_file(parent, path)
        for path in sorted(self._sweep.report_path.rglob("*")):
            if path.is_file():
                self._tracker.log_file(parent, path, path.parent.relative_to(self._sweep.path).as_posix())

    def close(self, status: RunStatus, reason: str = "") -> None:
        """End the parent with ``status``, and each child with its own, or with the parent's where it has none."""
        self._tracker.set_tags(self._runs[SWEEP], {REASON_TAG: reason})
        ends = {trial.name: trial.end for trial in self._sweep.trials()}
        # The parent comes last: while it runs, somebody will look after its children.
        for part in sorted(self._runs, key=lambda part: part == SWEEP):
            self._tracker.close_run(self._runs[part], ended(part, ends.get(part), status))

    def _time_of_ranking(self) -> int:
        mark = mark_of(self._sweep.ranking_path)
        return time.time_ns() // 1_000_000 if mark is None else mark[1] // 1_000_000

    def _opened(self) -> Iterator[None]:
        """Open the parent and the trials that have begun, yielding after each."""
        if SWEEP not in self._runs:
            self._runs[SWEEP] = self._open_sweep()
            yield
        for number in self._sweep.numbers():
            folder = self._sweep.trial(number)
            if folder.name not in self._runs:
                self._runs[folder.name] = self._open_trial(folder)
                yield

    def _open_sweep(self) -> str:
        tags = {
            "sfora.kind": "sweep",
            "sfora.searcher": self._config.searcher.name,
            "sfora.scheduler": self._config.scheduler.name,
            "sfora.trials": str(self._config.num_trials or ""),
            HEARTBEAT_TAG: now_text(),
            REASON_TAG: "",
        }
        parent = self._open(SWEEP, self._manifest.name, tags)
        self._tracker.log_params(parent, sweep_params(self._config))
        dataset = self._config.pack.data.name
        self._tracker.log_dataset(parent, dataset, self._manifest.dataset_digest, self._config.selection.split)
        return parent

    def _open_trial(self, folder: TrialFolder) -> str:
        tags = {"sfora.kind": "trial", "sfora.trial": folder.name, **member_tags(self._config), **end_tags(None)}
        child = self._open(folder.name, f"{folder.name} of {self._manifest.name}", tags)
        self._tracker.log_params(child, trial_params(self._config, folder.record().values))
        return child

    def _open(self, part: str, name: str, tags: Mapping[str, str]) -> str:
        parent = None if part == SWEEP else self._runs[SWEEP]
        common = {
            "sfora.sweep": f"{self._manifest.name}-{self._manifest.digest}",
            "sfora.digest": self._manifest.digest,
            "sfora.selection": self._config.selection.split,
            "sfora.selection_metric": self._metric,
            **{f"sfora.version.{package}": version for package, version in self._manifest.versions.items()},
        }
        return self._tracker.open_run(
            f"{key_prefix(self._manifest)}{part}", name, parent=parent, tags={**common, **tags}
        )

    def _trials_told(self) -> Iterator[None]:
        """Tell each trial, yielding after each; one unreadable folder keeps no other from being told."""
        faults: list[Exception] = []
        for name in [part for part in self._runs if part != SWEEP]:
            try:
                self._tell_trial(TrialFolder(self._sweep.trials_path / name))
            except TrackerError:
                raise
            except (InputError, OSError, ValueError) as fault:
                faults.append(fault)
            yield
        if faults:
            raise faults[0]

    def _tell_trial(self, folder: TrialFolder) -> None:
        self._tell_rounds(folder)
        mark, end = mark_of(folder.end_path), folder.end()
        if end is None or mark is None or self._told.get(folder.end_path) == mark:
            return
        run = self._runs[folder.name]
        self._tracker.log_metrics(run, list(end_points(end)))
        self._tracker.set_tags(run, end_tags(end))
        self._tracker.close_run(run, ended(folder.name, end, "KILLED"))
        self._told[folder.end_path] = mark

    def _tell_rounds(self, folder: TrialFolder) -> None:
        mark = mark_of(folder.rounds_path)  # before reading: what is appended meanwhile is told at the next turn
        if mark is None or self._told.get(folder.rounds_path) == mark:
            return
        new = [point for one in folder.rounds() for point in round_points(one, self._metric)]
        if new:
            self._tracker.log_metrics(self._runs[folder.name], new)
        self._told[folder.rounds_path] = mark
