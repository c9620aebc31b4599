"""Many trials in a row, faults in turn, moments at random."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from sfora_ray.benchmarks.chaos.faults import FAULTS, Fault
from sfora_ray.benchmarks.chaos.scene import FULL, Size, driver, letters_config
from sfora_ray.benchmarks.chaos.server import TrackerServer, tracker_server
from sfora_ray.benchmarks.chaos.trial import Ground, TrialOutcome, run_trial
from sfora_ray.config.pack import PackConfig
from sfora_ray.errors import SforaError
from sfora_ray.pack.run_folder import RunFolder


@dataclass(frozen=True)
class Cluster:
    """Where the packs run: what a driver needs to find it, and what it still holds."""

    environment: dict[str, str]
    leftovers: Callable[[], list[str]]


def chaos_trials(
    trials: int,
    *,
    local: bool,
    seed: int,
    say: Callable[[str], None],
    folder: Path | None = None,
    size: Size = FULL,
) -> Iterator[TrialOutcome]:
    """Yield the outcome of each trial as it ends.

    Args:
        trials: how many; faults come in turn, in an order drawn anew for each round.
        local: members as processes of this machine, without the faults that only a cluster knows.
        seed: draws order and moments. When a fault meets its pack depends on the machine's speed all the same.
        say: told what goes on.
        folder: where the packs lie afterwards; a temporary one that is removed, if None.
        size: of the packs.
    """
    chance = random.Random(seed)
    with _somewhere(folder) as place, tracker_server(place) as server, _cluster(local=local) as cluster:
        say("training a pack that nothing disturbs")
        ground = _ground(size, place, server, cluster, local=local)
        for number, fault in enumerate(_in_turn(trials, chance, local=local), start=1):
            say(f"trial {number} of {trials}: {fault.name}")
            spot = place / f"trial{number:03d}"
            _write_config(spot, ground.config(spot / "runs", spot.name))
            yield run_trial(ground, fault, chance, spot)


def _in_turn(trials: int, chance: random.Random, *, local: bool) -> Iterator[Fault]:
    possible = [fault for fault in FAULTS if not (local and fault.needs_ray)]
    drawn: list[Fault] = []
    while len(drawn) < trials:
        drawn += chance.sample(possible, len(possible))
    yield from drawn[:trials]


def _ground(size: Size, place: Path, server: TrackerServer, cluster: Cluster, *, local: bool) -> Ground:
    def config(output: Path, experiment: str) -> PackConfig:
        return letters_config(size, output, server.uri, experiment)

    spot = place / "undisturbed"
    undisturbed = config(spot / "runs", spot.name)
    _write_config(spot, undisturbed)
    arguments = ["pack", "run", str(spot / "pack.json"), *(["--local"] if local else [])]
    with driver(arguments, spot / "log", cluster.environment) as process:
        if process.wait() != 0:
            raise SforaError(f"chaos: the undisturbed pack failed. See {spot / 'log'}.")
    return Ground(
        config=config,
        reference=RunFolder(undisturbed.output_folder / undisturbed.run_name),
        server=server,
        environment=cluster.environment,
        root=None if local else psutil.Process(),
        local=local,
        leftovers=cluster.leftovers,
    )


def _write_config(spot: Path, config: PackConfig) -> None:
    spot.mkdir(parents=True)
    (spot / "pack.json").write_text(json.dumps(config.plain()))  # JSON is YAML as well


@contextmanager
def _somewhere(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="chaos-") as scratch:
        yield Path(scratch)


@contextmanager
def _cluster(*, local: bool) -> Iterator[Cluster]:
    if local:
        yield Cluster({}, list)
        return
    from sfora_ray.cluster.held import held_after_all
    from sfora_ray.cluster.session import cluster_address, connected

    with connected():
        yield Cluster({"RAY_ADDRESS": cluster_address()}, held_after_all)
