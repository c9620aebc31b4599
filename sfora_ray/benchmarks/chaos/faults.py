"""What may befall a pack in a night. Each fault strikes once and is real: signals, limits of the kernel, bad bytes."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from sfora_ray.benchmarks.chaos.scene import Scene

_SECONDS_AWAY = 6.0
_SECONDS_FULL = 3.0


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        name: in the table.
        strike: makes it happen.
        needs_ray: it strikes a process that only a cluster has.
        checkpoints_lost: how many checkpoints may have to be passed over.
    """

    name: str
    strike: Callable[[Scene, random.Random], None]
    needs_ray: bool = False
    checkpoints_lost: int = 0


def _kill_worker(scene: Scene, chance: random.Random) -> None:
    _a_worker(scene, chance).kill()


def _kill_member_task(scene: Scene, chance: random.Random) -> None:
    _kill_one(scene.processes_named("ray::run_member"), chance)


def _kill_controller(scene: Scene, chance: random.Random) -> None:
    _kill_one(scene.processes_named("ray::TrainController"), chance)


def _kill_driver(scene: Scene, chance: random.Random) -> None:  # noqa: ARG001
    scene.driver.kill()


def _interrupt(scene: Scene, chance: random.Random) -> None:  # noqa: ARG001
    scene.driver.send_signal(signal.SIGINT)


def _terminate(scene: Scene, chance: random.Random) -> None:  # noqa: ARG001
    scene.driver.send_signal(signal.SIGTERM)


def _interrupt_twice(scene: Scene, chance: random.Random) -> None:
    scene.driver.send_signal(signal.SIGINT)
    time.sleep(chance.uniform(0.05, 1.0))
    scene.driver.send_signal(signal.SIGINT)


def _fill_disk(scene: Scene, chance: random.Random) -> None:
    """Let the kernel refuse a worker's writes for a while, as a full disk does."""
    _limit_for_a_while(_a_worker(scene, chance), psutil.RLIMIT_FSIZE, 0)


def _take_memory(scene: Scene, chance: random.Random) -> None:
    """Give a worker no more memory than it has."""
    worker = _a_worker(scene, chance)
    _limit_for_a_while(worker, psutil.RLIMIT_AS, worker.memory_info().vms)


def _silence_tracker(scene: Scene, chance: random.Random) -> None:  # noqa: ARG001
    scene.server.freeze()
    time.sleep(_SECONDS_AWAY)
    scene.server.thaw()


def _damage_checkpoint(scene: Scene, chance: random.Random) -> None:
    """Kill everything, and flip a byte of the newest checkpoint of a member."""
    member = chance.choice(scene.members_under_way() or list(scene.run.specs()))
    scene.driver.kill()
    scene.driver.wait()
    time.sleep(2.0)  # until its workers have gone as well
    newest = max(scene.run.member(member).checkpoint_path.glob("step-*/state.safetensors"), default=None)
    if newest is not None:
        content = bytearray(newest.read_bytes())
        content[chance.randrange(len(content))] ^= 0xFF
        newest.write_bytes(content)


def _a_worker(scene: Scene, chance: random.Random) -> psutil.Process:
    found = [process for spec in scene.members_under_way() if (process := scene.process_of(spec)) is not None]
    if not found:
        raise psutil.NoSuchProcess(0)
    return chance.choice(found)


def _kill_one(processes: list[psutil.Process], chance: random.Random) -> None:
    if not processes:
        raise psutil.NoSuchProcess(0)
    chance.choice(processes).kill()


def _limit_for_a_while(process: psutil.Process, which: int, limit: int) -> None:
    soft, hard = process.rlimit(which)
    process.rlimit(which, (limit, hard))
    time.sleep(_SECONDS_FULL)
    if process.is_running():
        process.rlimit(which, (soft, hard))


FAULTS: tuple[Fault, ...] = (
    Fault("worker killed", _kill_worker),
    Fault("member task killed", _kill_member_task, needs_ray=True),
    Fault("controller killed", _kill_controller, needs_ray=True),
    Fault("driver killed", _kill_driver),
    Fault("SIGINT", _interrupt),
    Fault("SIGTERM", _terminate),
    Fault("SIGINT twice", _interrupt_twice),
    Fault("disk full for 3 s", _fill_disk),
    Fault("no memory for 3 s", _take_memory),
    Fault("tracker away for 6 s", _silence_tracker),
    Fault("killed, checkpoint damaged", _damage_checkpoint, checkpoints_lost=1),
)
