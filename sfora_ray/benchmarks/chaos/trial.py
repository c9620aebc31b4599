"""One trial: a pack is started, struck once at a random step, resumed until it is done, and judged."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from sfora_ray.benchmarks.chaos.faults import Fault
from sfora_ray.benchmarks.chaos.judge import differing_bits, faults_of_tracker, processes_left
from sfora_ray.benchmarks.chaos.scene import CHECKPOINT_STEPS, Scene, driver
from sfora_ray.benchmarks.chaos.server import TrackerServer
from sfora_ray.config.pack import PackConfig
from sfora_ray.errors import SforaError
from sfora_ray.pack.run_folder import RunFolder

_SECONDS_BETWEEN_LOOKS = 0.02
# A loaded machine is slow; what hangs does not end at all.
_SECONDS_AT_MOST = 1200.0
_RESUMES_AT_MOST = 3


@dataclass(frozen=True)
class TrialOutcome:
    """What became of a trial.

    Attributes:
        fault: what struck.
        moment: the step, of those of all members, at which it struck.
        exit_codes: of the first command and of each ``pack resume`` after it.
        redone: most steps that a member did twice after one interruption.
        allowed: most it may have to.
        differing: files that are not the bits of an undisturbed pack.
        tracker: what is wrong in the tracker.
        left: processes and resources that did not come back.
        seconds: wall time.
    """

    fault: str
    moment: int
    exit_codes: tuple[int, ...]
    redone: int
    allowed: int
    differing: tuple[str, ...]
    tracker: tuple[str, ...]
    left: tuple[str, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Return whether the pack ended as if nothing had happened."""
        ended = self.exit_codes[-1] == 0 and self.redone <= self.allowed
        return ended and not (self.differing or self.tracker or self.left)


@dataclass(frozen=True)
class Ground:
    """What all trials share.

    Attributes:
        config: of the pack, given an output folder and an experiment.
        reference: an undisturbed pack.
        server: the tracker's.
        environment: of the driver; names the cluster, if there is one.
        root: the process below which those of the cluster run; the driver's own where there is none.
        local: whether members are processes of this machine instead of Ray's.
        leftovers: tells what the cluster still holds.
    """

    config: Callable[[Path, str], PackConfig]
    reference: RunFolder
    server: TrackerServer
    environment: dict[str, str]
    root: psutil.Process | None
    local: bool
    leftovers: Callable[[], list[str]]


@dataclass
class _Watched:
    """What was seen of the members while they trained."""

    redone: int = 0
    processes: set[psutil.Process] = field(default_factory=set)
    _attempts: dict[str, int] = field(default_factory=dict)
    _reached: dict[str, int] = field(default_factory=dict)

    def look(self, scene: Scene) -> None:
        """Note how far each member has come, and how far back a new attempt began."""
        for spec in scene.run.specs():
            started = [event for event in scene.run.member(spec).attempts() if event.event == "started"]
            if len(started) > self._attempts.get(spec.id, 0):
                self._attempts[spec.id] = len(started)
                self.redone = max(self.redone, self._reached.get(spec.id, 0) - started[-1].step)
                self._reached[spec.id] = started[-1].step
            self._reached[spec.id] = max(self._reached.get(spec.id, 0), scene.steps_of(spec))


def run_trial(ground: Ground, fault: Fault, chance: random.Random, folder: Path) -> TrialOutcome:
    """Run one trial in ``folder``."""
    started = time.monotonic()
    experiment = folder.name
    config = ground.config(folder / "runs", experiment)
    run = RunFolder(config.output_folder / config.run_name)
    moment = chance.randrange(1, _steps_in_all(ground.reference))
    watched = _Watched()
    codes = [_play(ground, fault, chance, moment, folder, run, watched)]
    while codes[-1] != 0 and len(codes) <= _RESUMES_AT_MOST:
        codes.append(_play(ground, None, chance, 0, folder, run, watched))
    return TrialOutcome(
        fault=fault.name,
        moment=moment,
        exit_codes=tuple(codes),
        redone=watched.redone,
        allowed=CHECKPOINT_STEPS * (1 + fault.checkpoints_lost),
        differing=tuple(differing_bits(run, ground.reference)) if run.summary_path.is_file() else ("no summary",),
        tracker=tuple(faults_of_tracker(config, run, ground.server.uri, experiment)),
        left=(*processes_left(watched.processes), *ground.leftovers()),
        seconds=time.monotonic() - started,
    )


def _play(
    ground: Ground,
    fault: Fault | None,
    chance: random.Random,
    moment: int,
    folder: Path,
    run: RunFolder,
    watched: _Watched,
) -> int:
    """Run or resume the pack to the end of its command, struck once where there is a fault; return the exit code."""
    where = ["--local"] if ground.local else []
    command = (
        ["pack", "resume", str(run.path)] if run.manifest_path.exists() else ["pack", "run", str(folder / "pack.json")]
    )
    struck = fault is None
    end = time.monotonic() + _SECONDS_AT_MOST
    with driver([*command, *where], folder / "log", ground.environment) as process:
        scene = Scene(run, process, ground.root or psutil.Process(process.pid), ground.server)
        while process.poll() is None:
            if time.monotonic() > end:
                raise SforaError(f"chaos: the pack hangs after {_SECONDS_AT_MOST:g} s. See {folder}/log.")
            if run.manifest_path.exists():
                watched.look(scene)
                if not struck and fault is not None and scene.steps_done() >= moment:
                    watched.processes |= set(process.children(recursive=True))
                    struck = _strike(fault, scene, chance)
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        return int(process.returncode)


def _strike(fault: Fault, scene: Scene, chance: random.Random) -> bool:
    """Return whether it struck; what it aims at may not be there yet."""
    try:
        fault.strike(scene, chance)
    except psutil.NoSuchProcess:
        return False
    return True


def _steps_in_all(reference: RunFolder) -> int:
    return sum(reference.member(spec).epochs()[-1].step for spec in reference.specs())
