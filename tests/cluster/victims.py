"""The processes of a member on a local cluster, to be killed."""

from pathlib import Path

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
    actors = cluster_state.actor_table(None).values()
    return psutil.Process(next(actor["Pid"] for actor in actors if actor["Address"]["Port"] == port))


def task_of(folder: MemberFolder) -> psutil.Process:
    port = _owner_port(controller_of(folder).pid)
    tasks = [process for process in psutil.Process().children(recursive=True) if "run_member" in process.name()]
    return next(process for process in tasks if port in _listens_on(process))


def epoch_of(folder: MemberFolder) -> int:
    progress = folder.progress()
    return 0 if progress is None else progress.epoch


def scratch_left(place: Path) -> list[Path]:
    return list(place.glob("sfora-train-*"))


def _owner_port(pid: int) -> int:
    actors = cluster_state.actor_table(None).values()
    port: int = next(actor["OwnerAddress"]["Port"] for actor in actors if actor["Pid"] == pid)
    return port


def _listens_on(process: psutil.Process) -> set[int]:
    return {one.laddr.port for one in process.net_connections(kind="tcp") if one.status == psutil.CONN_LISTEN}
