"""Where a member's failure stops being an exception and becomes a result."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

import torch

from sfora_ray.config.member import Cause, MemberResult, MemberSpec
from sfora_ray.errors import InputError, NonFiniteError, ReplacedError, SforaError, StoppedError, StorageError
from sfora_ray.recipes.parallel import leave_group
from sfora_ray.training.attempts import end_attempt, restarts
from sfora_ray.training.home import HERE, Home
from sfora_ray.training.member import train_member
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.worker import Worker

_log = logging.getLogger(__name__)


def member_result(spec: MemberSpec, path: Path, worker: Worker, home: Home = HERE) -> MemberResult:
    """Train a member in the folder ``path`` and return what became of it; ``result.json`` is written as well.

    What the input or the mathematics is to blame for is a failed result, for a repeat would fail again. A member that
    was asked to stop returns a stopped result and writes none: it is to go on.

    Args:
        spec: what to train.
        path: the member's folder.
        worker: which of its workers this is.
        home: where the folder is at home, if not here.

    Raises:
        Exception: all else, such as a dead GPU or a storage error: whoever launched the member may try again. Why
            stands in ``attempts.jsonl``.
    """
    folder = MemberFolder(path, home)
    try:
        result = train_member(spec, folder, worker)
    except StoppedError as stop:
        if not isinstance(stop, ReplacedError):
            end_attempt(folder, "", str(stop))
        leave_group()
        return MemberResult(id=spec.id, seed=spec.seed, status="stopped", reason=str(stop))
    except (InputError, NonFiniteError) as error:
        _log.error("member %s failed\n%s", spec.id, traceback.format_exc())
        result = failed(spec, folder, cause_of(error), reason_of(error))
        leave_group()
    except Exception as error:
        if worker.is_first:
            end_attempt(folder, cause_of(error), reason_of(error))
        leave_group()
        raise
    if worker.is_first or result.status == "failed":
        # Of several workers the one that knows why says so; the others only see it go.
        folder.write_result(result)
    return result


def failed(spec: MemberSpec, folder: MemberFolder, cause: Cause, reason: str) -> MemberResult:
    """Return the result of a member that failed, with why its earlier attempts ended."""
    earlier = restarts(folder.attempts())
    return MemberResult(id=spec.id, seed=spec.seed, status="failed", cause=cause, reason=reason, restarts=earlier)


def cause_of(error: Exception) -> Cause:
    """Return what kind of end an exception is."""
    if isinstance(error, InputError):
        return "input"
    if isinstance(error, NonFiniteError):
        return "non_finite"
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return "out_of_memory"
    if isinstance(error, (StorageError, OSError)):
        return "storage"
    return "exception"


def reason_of(error: Exception) -> str:
    """Return an error in one line; one that is not ours with its kind and place."""
    if isinstance(error, SforaError):
        return " ".join(str(error).split())
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {' '.join(str(error).split())} ({Path(frame.filename).name}:{frame.lineno})"
