"""The run folder as a tracker shows it: a parent run, a child for each member, each fold and each pack-size curve.

Everything told here is read from the run folder, and runs are found by keys made of the pack's digest; so telling
again, after a crash or to another server, ends with the same runs and the same points.

Steps grow whatever becomes of a pack. A member's step is the epoch; that of its result is the number of epochs trained,
since an earlier epoch may turn out best once there are more. The step of the parent and of the folds is 1000 for each
epoch and 1 for each finished member: it grows with more epochs, even if fewer members finish them, and with more
members. The values of a pack-size curve change when the pack grows, at sizes already told; so the curve of each state
of the pack, ``curve:<members>x<epochs>``, is a run of its own, its step the size. Parameters stay what they were when
the pack was first run; what an extension changed stands in tags ``sfora.extended.<path>``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from sfora_ray.config.member import MemberSpec
from sfora_ray.errors import InputError, TrackerError
from sfora_ray.pack.ending import CURVE, FOLD, PACK, ended, final_results, pack_step
from sfora_ray.pack.run_folder import Manifest, RunFolder
from sfora_ray.pack.summary import FoldFacts, Summary
from sfora_ray.pack.told import (
    curve_points,
    epoch_points,
    flat,
    fold_tags,
    fold_values,
    member_tags,
    pack_points,
    pack_tags,
    points,
)
from sfora_ray.tracking import RunStatus, Tracker

HEARTBEAT_TAG = "sfora.heartbeat"
"""Tag of the parent: Unix time in milliseconds at which its driver was last alive."""
REASON_TAG = "sfora.reason"
SECONDS_BETWEEN_BEATS = 30.0


class Mirror:
    """Tells one tracker about one run folder.

    Attributes:
        busy: held by the thread that tells; all but :meth:`beat` needs it where there are several.
    """

    def __init__(self, run: RunFolder, tracker: Tracker) -> None:
        self.busy = threading.Lock()
        self._run = run
        self._tracker = tracker
        self._manifest = run.manifest()
        self._specs = run.specs()
        self._runs: dict[str, str] = {}
        self._told: dict[Path, tuple[int, int]] = {}
        self._last_beat = 0.0

    def check(self) -> None:
        """Prove that the tracker answers; raises ``TrackerError`` if it does not."""
        self._tracker.check()

    def open(self) -> None:
        """Open the parent and one child per member, whatever was opened before; everything will be told again."""
        self._runs.clear()
        self._told.clear()
        self._open_missing()

    def turn(self) -> Iterator[None]:
        """Open what is not open yet and tell what is new; it may be left after every run told."""
        if any(part not in self._runs for part in (PACK, *(spec.id for spec in self._specs))):
            self._tracker.check()
            self._open_missing()
        yield
        for _ in self._epochs_told():
            yield
        self.tell_members()

    def run_id(self, part: str) -> str:
        """Return the tracker's id of ``pack``, of a member's id, of ``fold:<name>`` or of a curve."""
        return self._runs[part]

    def beat(self) -> None:
        """Tell, every half a minute at most, that the driver lives."""
        parent = self._runs.get(PACK)
        if parent is not None and time.monotonic() - self._last_beat >= SECONDS_BETWEEN_BEATS:
            self._tracker.set_tags(parent, {HEARTBEAT_TAG: now_text()})
            self._last_beat = time.monotonic()

    def follow(self) -> None:
        """Tell the epochs that the tracker does not have yet."""
        for _ in self._epochs_told():
            pass

    def tell_members(self) -> None:
        """Tell each member's result and end its run."""
        for spec in self._specs:
            path = self._run.member(spec).result_path
            mark = mark_of(path)
            if mark is not None and self._told.get(path) != mark:
                self._tell_member(spec, time_ms=mark[1] // 1_000_000)
                self._told[path] = mark

    def tell_summary(self, summary: Summary, time_ms: int) -> None:
        """Tell what the pack came to: the parent's numbers, and a child run for each fold and for the curve."""
        parent, step = self._runs[PACK], pack_step(summary)
        self._tracker.log_dataset(parent, summary.pack.dataset, summary.pack.dataset_digest, "train and test")
        self._tracker.set_tags(parent, pack_tags(summary))
        self._tracker.log_metrics(parent, list(pack_points(summary, step, time_ms)))
        for fold in summary.folds:
            self._tell_fold(fold, step, time_ms)
        self._tell_curve(summary, time_ms)

    def tell_files(self) -> None:
        """Store the report, its figures and the records as artifacts of the parent."""
        parent = self._runs[PACK]
        for path in (self._run.manifest_path, self._run.summary_path):
            self._tracker.log_file(parent, path)
        for path in sorted(self._run.report_path.rglob("*")):
            if path.is_file():
                folder = path.parent.relative_to(self._run.path).as_posix()
                self._tracker.log_file(parent, path, folder)

    def close(self, status: RunStatus, reason: str = "") -> None:
        """End the parent with ``status``, and each child with its own, or with the parent's where it has none."""
        results = final_results(self._run)
        self._tracker.set_tags(self._runs[PACK], {REASON_TAG: reason})
        # The parent comes last: while it runs, somebody will look after its children.
        for part in sorted(self._runs, key=lambda part: part == PACK):
            self._tracker.close_run(self._runs[part], ended(part, results, status))

    def _open_missing(self) -> None:
        if PACK not in self._runs:
            seeds = ", ".join(str(spec.seed) for spec in self._specs)
            tags = {"sfora.kind": "pack", "sfora.seeds": seeds, HEARTBEAT_TAG: now_text()}
            parent = self._open(PACK, self._manifest.name, {**tags, **self._changes(), REASON_TAG: ""})
            self._tracker.log_params(parent, self._params())
            self._runs[PACK] = parent
        for spec in self._specs:
            if spec.id not in self._runs:
                self._runs[spec.id] = self._open_member(spec)

    def _open_member(self, spec: MemberSpec) -> str:
        tags = {"sfora.kind": "member", "sfora.member": spec.id, "sfora.seed": str(spec.seed)}
        name = f"{spec.folder_name} of {self._manifest.name}"
        child = self._open(spec.id, name, {**tags, **self._changes(), **member_tags(None)})
        self._tracker.log_params(child, {"seed": str(spec.seed), **self._params()})
        return child

    def _open(self, part: str, name: str, tags: Mapping[str, str]) -> str:
        parent = None if part == PACK else self._runs[PACK]
        common = {
            "sfora.pack": f"{self._manifest.name}-{self._manifest.digest}",
            "sfora.digest": self._manifest.digest,
            "sfora.selection": self._manifest.config.selection.split,
            **{f"sfora.version.{package}": version for package, version in self._manifest.versions.items()},
        }
        key = f"{key_prefix(self._manifest)}{part}"
        return self._tracker.open_run(key, name, parent=parent, tags={**common, **tags})

    def _params(self) -> dict[str, str]:
        """Return the configuration as the pack was first run with it; MLflow's parameters never change."""
        return flat(self._manifest.original_config().plain(), leave_out=("seeds",))

    def _changes(self) -> dict[str, str]:
        """Return as tags what the configuration says now and did not at first."""
        before, now = self._params(), flat(self._manifest.config.plain(), leave_out=("seeds",))
        return {f"sfora.extended.{path}": value for path, value in now.items() if before.get(path) != value}

    def _epochs_told(self) -> Iterator[None]:
        """Tell each member's epochs, yielding after each; one unreadable folder keeps no other from being told."""
        faults: list[Exception] = []
        for spec in self._specs:
            try:
                self._tell_epochs(spec)
            except TrackerError:
                raise
            except (InputError, OSError, ValueError) as fault:
                faults.append(fault)
            yield
        if faults:
            raise faults[0]

    def _tell_epochs(self, spec: MemberSpec) -> None:
        folder = self._run.member(spec)
        mark = mark_of(folder.epochs_path)  # before reading: what is appended meanwhile is told at the next turn
        if mark is None or self._told.get(folder.epochs_path) == mark:
            return
        new = [point for record in folder.epochs() for point in epoch_points(record)]
        if new:
            self._tracker.log_metrics(self._runs[spec.id], new)
        self._told[folder.epochs_path] = mark

    def _tell_member(self, spec: MemberSpec, time_ms: int) -> None:
        result = self._run.member(spec).result()
        if result is None or (result.status == "finished" and not self._manifest.is_finished(result)):
            return  # it goes on from there
        run = self._runs[spec.id]
        epochs = result.epochs or self._manifest.original_config().training.epochs
        self._tracker.set_tags(run, member_tags(result))
        self._tracker.log_metrics(run, list(points(result.metrics, epochs, time_ms)))
        self._tracker.close_run(run, ended(spec.id, {spec.id: result}, "KILLED"))

    def _tell_fold(self, fold: FoldFacts, step: int, time_ms: int) -> None:
        part = f"{FOLD}{fold.name}"
        run = self._open(part, f"fold {fold.name} of {self._manifest.name}", fold_tags(fold))
        self._runs[part] = run
        values = {**fold_values(fold), "dim": float(fold.dim)}
        self._tracker.log_metrics(run, list(points(values, step, time_ms)))
        self._tracker.close_run(run, "FINISHED")

    def _tell_curve(self, summary: Summary, time_ms: int) -> None:
        state = f"{summary.pack.num_members}x{summary.pack.epochs}"
        tags = {"sfora.kind": "curve", "sfora.num_members": str(summary.pack.num_members)}
        run = self._open(f"{CURVE}{state}", f"curve {state} of {self._manifest.name}", tags)
        self._runs[f"{CURVE}{state}"] = run
        told = [told for point in summary.pack_curve for told in curve_points(point, time_ms)]
        self._tracker.log_metrics(run, told)
        self._tracker.close_run(run, "FINISHED")


def key_prefix(manifest: Manifest) -> str:
    """Return what the keys of all runs of a pack start with."""
    return f"{manifest.name}-{manifest.digest}/"


def mark_of(path: Path) -> tuple[int, int] | None:
    """Return size and time of a file's last change, or None if it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def now_text() -> str:
    """Return the Unix time in milliseconds, as a tag holds it."""
    return str(time.time_ns() // 1_000_000)
