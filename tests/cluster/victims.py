"""The processes of a member on a local cluster, to be killed."""

from pathlib import Path
from typing import Any

import psutil
from ray._private.state import state as cluster_state

from sfora_ray.training.attempts import current_attempt
from sfora_ray.training.member_folder import MemberFolder


def worker_of(folder: MemberFolder) -> psutil.Process:
    attempt = current_attempt(folder)
    assert attempt is not None
    return psutil.Process(attempt.pid)


def controller_of(folder: MemberFolder) -> psutil.Process:
    port = _owner_port(worker_of(folder).pid)
    return psutil.Process(next(actor["Pid"] for actor in _living() if actor["Address"]["Port"] == port))


def task_of(folder: MemberFolder) -> psutil.Process:
    port = _owner_port(controller_of(folder).pid)
    tasks = [process for process in psutil.Process().children(recursive=True) if "run_member" in process.name()]
    return next(process for process in tasks if port in _listens_on(process))


def epoch_of(folder: MemberFolder) -> int:
    progress = folder.progress()
    return 0 if progress is None else progress.epoch


def steps_since_start(folder: MemberFolder, *, attempts: int) -> int:
    """Return the steps of the newest attempt so far, if it is of that number; else 0."""
    starts = [event for event in folder.attempts() if event.event == "started"]
    progress = folder.progress()
    if len(starts) != attempts or progress is None or progress.time_ms < starts[-1].time_ms:
        return 0
    return progress.step_of_all - starts[-1].step


def scratch_left(place: Path) -> list[Path]:
    return list(place.glob("sfora-train-*"))


def _owner_port(pid: int) -> int:
    port: int = next(actor["OwnerAddress"]["Port"] for actor in _living() if actor["Pid"] == pid)
    return port


def _living() -> list[dict[str, Any]]:
    """Return the actors that live: of a dead one the process id and the port may be another's by now."""
    return [actor for actor in cluster_state.actor_table(None).values() if actor["State"] == "ALIVE"]


def _listens_on(process: psutil.Process) -> set[int]:
    return {one.laddr.port for one in process.net_connections(kind="tcp") if one.status == psutil.CONN_LISTEN}
