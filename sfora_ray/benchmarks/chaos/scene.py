"""What a trial plays in: a pack of letters, the process that drives it, and the processes below."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from sfora_ray.benchmarks.chaos.server import TrackerServer
from sfora_ray.config.load import build_config
from sfora_ray.config.member import MemberSpec
from sfora_ray.config.pack import PackConfig
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.training.attempts import current_attempt

CHECKPOINT_STEPS = 10
_PROGRAM = "from sfora_ray.cli.main import main; main()"


@dataclass(frozen=True)
class Size:
    """How large the packs are that are struck."""

    members: int = 3
    epochs: int = 4


FULL = Size()


def letters_config(size: Size, output: Path, uri: str, experiment: str) -> PackConfig:
    """Return a pack of small HERDs on letters that says every step and saves every tenth."""
    values = {
        "name": "chaos",
        "seeds": list(range(size.members)),
        "data": {"name": "glyphs"},
        "input": {"image_size": 32, "train": {"crop_scale": None, "horizontal_flip": False}, "test": {"resize": 32}},
        "sampler": {"name": "per_class", "batch_size": 120, "samples_per_class": 8},
        "model": {"backbone": {"name": "conv4", "widths": [8, 8, 16, 16]}, "dim": 32, "layer_norm": True},
        "loss": {"name": "hist", "hidden": 32},
        "recipe": {"name": "distillation", "momentum": 0.99},
        "optimizer": {"lr": 1e-3},
        "schedule": {"warmup_epochs": 0},
        "training": {
            "epochs": size.epochs,
            "evaluate_every": 2,
            "checkpoint_steps": CHECKPOINT_STEPS,
            "progress_seconds": 0,
        },
        "selection": {"split": "test"},
        "evaluation": {"nmi": False},
        "folds": ["wccn", "gpa"],
        "tracking": {"name": "mlflow", "uri": uri, "experiment": experiment},
        "output": str(output),
    }
    return build_config(values, place="chaos")


@dataclass(frozen=True)
class Scene:
    """A pack under way.

    Attributes:
        run: its run folder.
        driver: the process of ``sfora-ray pack run``.
        root: whose descendants all processes of the pack are: the driver, or what started the cluster.
        server: the tracker's.
    """

    run: RunFolder
    driver: psutil.Popen
    root: psutil.Process
    server: TrackerServer

    def members_under_way(self) -> list[MemberSpec]:
        """Return the members that train now."""
        return [spec for spec in self.run.specs() if self._trains(spec)]

    def process_of(self, member: MemberSpec) -> psutil.Process | None:
        """Return the process that trains a member, if it lives."""
        attempt = current_attempt(self.run.member(member))
        if attempt is None or not psutil.pid_exists(attempt.pid):
            return None
        return psutil.Process(attempt.pid)

    def processes_named(self, title: str) -> list[psutil.Process]:
        """Return the processes of the pack's cluster whose command line starts with ``title``."""
        return [one for one in self.root.children(recursive=True) if command_of(one).startswith(title)]

    def steps_done(self) -> int:
        """Return the optimiser steps that all members have said they did."""
        return sum(self.steps_of(spec) for spec in self.run.specs())

    def steps_of(self, member: MemberSpec) -> int:
        """Return the optimiser steps that a member has said it did."""
        progress = self.run.member(member).progress()
        return progress.step_of_all if progress else 0

    def _trains(self, spec: MemberSpec) -> bool:
        progress = self.run.member(spec).progress()
        return progress is not None and progress.state == "training" and self.process_of(spec) is not None


def command_of(process: psutil.Process) -> str:
    """Return a process's command line; empty if it is gone."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@contextmanager
def driver(arguments: list[str], log: Path, environment: dict[str, str]) -> Iterator[psutil.Popen]:
    """Run ``sfora-ray`` with these arguments as a process of its own; it is gone when the block ends."""
    with log.open("ab") as stream:
        process = psutil.Popen(
            [sys.executable, "-c", _PROGRAM, *arguments],
            stdout=stream,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
