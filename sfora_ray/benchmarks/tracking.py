"""What tracking costs: a member that MLflow hears of while it trains against the same member untracked.

The clock is the member's own, from the end of its first epoch to the end of its last: what starting a process takes,
and telling the rest after training, is no part of it.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from statistics import median

from sfora_ray.benchmarks.base import BenchmarkResult
from sfora_ray.benchmarks.pack import letters_pack
from sfora_ray.config.load import build_config
from sfora_ray.errors import SforaError
from sfora_ray.pack.following import following
from sfora_ray.pack.mirror import Mirror
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.workflows.launchers import Launcher

_SECONDS_BETWEEN_LOOKS = 0.2


def run(*, quick: bool = False) -> BenchmarkResult:
    """Train a HERD on letters with MLflow over SQLite and without, in turn; not quick, a training takes a minute."""
    epochs, rounds = (3, 1) if quick else (20, 3)
    times: dict[bool, list[float]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as scratch:
        folders = (Path(scratch) / str(number) for number in count())
        _train(next(folders), 2, tracked=True)  # decodes the letters, makes the database
        for _ in range(rounds):
            for tracked in (True, False):
                times[tracked].append(_train(next(folders), epochs, tracked=tracked))
    ours, theirs = median(times[True]), median(times[False])
    return BenchmarkResult(
        name="tracking",
        ours_seconds=ours,
        theirs_seconds=theirs,
        ratio=ours / theirs,
        mark="<= 1.01",
        peak_mib=0.0,
        note=f"1 member, {epochs} epochs of letters, MLflow told every 2 s into SQLite; every epoch arrived",
    )


def _train(output: Path, epochs: int, *, tracked: bool) -> float:
    """Return the seconds from the end of the first epoch to the end of the last."""
    run = RunFolder.create(build_config(_values(output, epochs, tracked), place="benchmark"), "none")
    mirror = Mirror(run, run.manifest().config.tracking.build())
    launcher = Launcher(local=True)
    with launcher.ready(), following(mirror) if tracked else nullcontext():
        members = launcher.launch(run, run.specs())
        while not all(state in ("finished", "failed") for state in members.poll().values()):
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    if len(run.finished()) != len(run.specs()):
        raise SforaError(f"benchmark tracking: a member failed: {[r.reason for r in run.results().values()]}")
    records = run.member(run.specs()[0]).epochs()
    assert len(records) == epochs
    return (records[-1].time_ms - records[0].time_ms) / 1000


def _values(output: Path, epochs: int, tracked: bool) -> dict[str, object]:
    uri = f"sqlite:///{output.parent}/mlflow.db"
    tracking = {"name": "mlflow", "uri": uri} if tracked else {"name": "none"}
    return {**letters_pack(output, epochs), "seeds": [0], "tracking": tracking}
