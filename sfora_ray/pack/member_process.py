"""The process of one member on this machine: how it starts, that it ends with its parent, and what its end tells."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from typing import Any

import torch

from sfora_ray.config.member import Cause, MemberSpec
from sfora_ray.config.pack import ResourceOptions
from sfora_ray.training.boundary import cause_of, member_result
from sfora_ray.training.environment import inherited, worker_environment
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.output import output_to
from sfora_ray.training.worker import Worker
from sfora_ray.training.working_copy import member_folder

_ORPHANED = 3
_STORAGE_FAILED = 4


def member_process(spec: MemberSpec, folder: MemberFolder, device: str) -> BaseProcess:
    """Return a process, not yet started, that trains a member on ``device``."""
    arguments = (spec.model_dump(mode="json"), folder.place, device)
    return multiprocessing.get_context("spawn").Process(target=_train_here, args=arguments, name=spec.id)


def start(process: BaseProcess, resources: ResourceOptions) -> None:
    """Start a member's process; it ends when this one does, however that ends."""
    with inherited(worker_environment(resources)), _deaf_to_ctrl_c():
        process.start()


def told_by(exit_code: int) -> tuple[Cause, str]:
    """Return why a process died, as far as its exit code tells."""
    if exit_code == _STORAGE_FAILED:
        return "storage", "its storage failed, so that it could not even say why"
    if exit_code >= 0:
        return "exception", f"its process ended with exit code {exit_code} and left no result"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    hint = ", as the system does when memory runs out" if name == "SIGKILL" else ""
    return "signal", f"killed by {name}{hint}"


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Start processes with SIGINT blocked: a terminal sends it to all, but this process speaks for its members."""
    resource_tracker.ensure_running()  # on its first start it would set the mask itself
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _train_here(spec: dict[str, Any], place: str, device: str) -> None:
    threading.Thread(target=_die_with_parent, name="parent", daemon=True).start()
    member = MemberSpec.model_validate(spec)
    try:
        _train_in(member, place, device)
    except Exception as error:
        if cause_of(error) != "storage":
            raise
        traceback.print_exc()
        sys.exit(_STORAGE_FAILED)  # the record of it may lie in that very storage


def _train_in(member: MemberSpec, place: str, device: str) -> None:
    with member_folder(place, member) as folder, output_to(folder.log_path):
        here = torch.device(device)
        if here.type == "cuda":
            torch.cuda.set_device(here)
        member_result(member, folder.path, Worker.alone(here), folder.home)


def _die_with_parent() -> None:
    """Wait until the parent is gone, killed perhaps, and leave at once: nobody would collect the member."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "a member's process has been started by another"
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(_ORPHANED)
