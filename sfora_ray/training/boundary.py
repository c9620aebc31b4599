"""Where a member's failure stops being an exception and becomes a result."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.errors import SforaError
from sfora_ray.recipes.parallel import leave_group
from sfora_ray.training.member import train_member
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.worker import Worker

_log = logging.getLogger(__name__)


def member_result(
    spec: MemberSpec, path: Path, worker: Worker, *, becomes_result: type[Exception] = Exception
) -> MemberResult:
    """Train a member in the folder ``path`` and return what became of it; also writes ``result.json``.

    Args:
        spec: what to train.
        path: the member's folder.
        worker: which of its workers this is.
        becomes_result: errors that end as a failed result; others are raised, for whoever can try again.
    """
    folder = MemberFolder(path)
    try:
        result = train_member(spec, folder, worker)
    except becomes_result as error:
        _log.error("member %s failed\n%s", spec.id, traceback.format_exc())
        result = failed(spec, _reason(error))
        leave_group()
    except Exception:
        leave_group()
        raise
    if worker.is_first:
        folder.write_result(result)
    return result


def failed(spec: MemberSpec, reason: str) -> MemberResult:
    """Return the result of a member that failed."""
    return MemberResult(id=spec.id, seed=spec.seed, status="failed", reason=reason)


def _reason(error: Exception) -> str:
    if isinstance(error, SforaError):
        return " ".join(str(error).split())
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {' '.join(str(error).split())} ({Path(frame.filename).name}:{frame.lineno})"
