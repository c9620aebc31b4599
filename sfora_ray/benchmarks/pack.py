"""What Ray costs: a pack through Ray Train against the same members as plain processes, as many at a time."""

from __future__ import annotations

import filecmp
import tempfile
import time
from pathlib import Path

from sfora_ray.benchmarks.base import BenchmarkResult
from sfora_ray.config.load import build_config
from sfora_ray.errors import SforaError
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.workflows.launchers import Launcher

_SECONDS_BETWEEN_LOOKS = 0.2


def run(*, quick: bool = False) -> BenchmarkResult:
    """Train two HERDs on letters, two at a time, once each way; not quick, a member takes some minutes."""
    epochs = 2 if quick else 40
    with tempfile.TemporaryDirectory() as scratch:
        theirs = _train(Path(scratch) / "plain", epochs, local=True)
        ours = _train(Path(scratch) / "ray", epochs, local=False)
        _check(Path(scratch))
    return BenchmarkResult(
        name="pack",
        ours_seconds=ours,
        theirs_seconds=theirs,
        ratio=ours / theirs,
        mark="<= 1.05",
        peak_mib=0.0,
        note=f"2 members, {epochs} epochs of letters, starting Ray included; embeddings are the same bits",
    )


def _train(output: Path, epochs: int, *, local: bool) -> float:
    """Return the seconds from nothing to the last member's end."""
    run = RunFolder.create(build_config(letters_pack(output, epochs), place="benchmark"), "none")
    launcher = Launcher(local=local)
    started = time.perf_counter()
    with launcher.ready():
        members = launcher.launch(run, run.specs())
        while not all(state in ("finished", "failed") for state in members.poll().values()):
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    seconds = time.perf_counter() - started
    if len(run.finished()) != len(run.specs()):
        raise SforaError(f"benchmark pack: members failed: {[r.reason for r in run.results().values()]}")
    return seconds


def letters_pack(output: Path, epochs: int) -> dict[str, object]:
    """Return the configuration of two HERDs on letters, as YAML would give it."""
    return {
        "name": "benchmark",
        "seeds": [0, 1],
        "data": {"name": "glyphs"},
        "input": {
            "image_size": 32,
            "train": {"crop_scale": None, "horizontal_flip": False},
            "test": {"resize": 32},
        },
        "sampler": {"name": "per_class", "batch_size": 120, "samples_per_class": 8},
        "model": {"backbone": {"name": "conv4"}, "dim": 128, "layer_norm": True},
        "loss": {"name": "hist"},
        "recipe": {"name": "distillation"},
        "training": {"epochs": epochs, "evaluate_every": epochs},
        "selection": {"split": "last"},
        "tracking": {"name": "none"},
        "output": str(output),
    }


def _check(scratch: Path) -> None:
    plain = sorted((scratch / "plain").rglob("embeddings.*.npz"))
    for path in plain:
        other = scratch / "ray" / path.relative_to(scratch / "plain")
        assert filecmp.cmp(path, other, shallow=False), "both ways must give the same bits"
