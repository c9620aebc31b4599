"""Why a member's Train run ended before its time, from what Ray raised: the kind, one line, and whether to try again.

Ray wraps: a task's error is a ``RayTaskError``, a training worker's death reaches us as a ``WorkerGroupError`` with one
failure per rank, each perhaps within another wrapper. An actor's death has no kind of its own for a lost node or for
Ray's memory monitor; only the text tells, in words fixed in Ray's sources (``gcs_actor_manager``, ``WorkerExitType``).
"""

from __future__ import annotations

from ray.exceptions import (
    ActorUnavailableError,
    GetTimeoutError,
    LocalRayletDiedError,
    NodeDiedError,
    ObjectStoreFullError,
    OutOfDiskError,
    OutOfMemoryError,
    RayActorError,
    RayError,
    RayTaskError,
    TaskCancelledError,
    WorkerCrashedError,
)
from ray.train import ControllerError, PreemptionError, WorkerGroupError

from sfora_ray.config.member import Cause
from sfora_ray.options import Options
from sfora_ray.training.boundary import cause_of, reason_of

_KINDS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], Cause], ...] = (
    (OutOfMemoryError, "out_of_memory"),
    # Of a process that died its node tells within a second; "unavailable" means that the node has not.
    ((NodeDiedError, LocalRayletDiedError, PreemptionError, ActorUnavailableError), "node_lost"),
    ((WorkerCrashedError, RayActorError), "signal"),
    ((OutOfDiskError, ObjectStoreFullError), "storage"),
    ((GetTimeoutError, TimeoutError), "timeout"),
)
# Train's own time-outs are plain exceptions of a module that is not public.
_TRAIN_TIMEOUTS = ("WorkerHealthCheckTimeoutError", "WorkerGroupStartupTimeoutError", "BroadcastCollectiveTimeoutError")
_WORDS: tuple[tuple[str, Cause], ...] = (
    ("OUT_OF_MEMORY", "out_of_memory"),
    ("running low on memory", "out_of_memory"),
    ("its node has died", "node_lost"),
    ("its node is dead", "node_lost"),
)
# When one rank dies the others soon fail of it, with an exception or a time-out: these say least.
_TELLING: tuple[Cause, ...] = ("out_of_memory", "node_lost", "signal", "input", "non_finite", "storage")
_ADVICE = " Some common causes include"


class End(Options):
    """Why a member's Train run ended without a result."""

    cause: Cause
    reason: str
    """One line."""
    again: bool
    """Whether the infrastructure is to blame and the member may be sent again."""


def end_of(error: BaseException) -> End:
    """Return why a Train run ended, from what was raised."""
    error = _task_error(error)
    rank, root = _root(error)
    place = "" if rank is None else f"worker {rank}: "
    return End(cause=_cause(root), reason=place + _reason(root), again=_again(error, root))


def cause_of_workers(failures: dict[int, Exception]) -> tuple[Cause, str]:
    """Return the cause and the reason that tell most among the failures of a member's workers, by rank."""
    rank, root = _most_telling(failures)
    return _cause(root), f"worker {rank}: {_reason(root)}"


def last_line(error: BaseException) -> str:
    """Return the kind of an error and the last line of its text, where Ray puts the cause, without Ray's advice."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1].split(_ADVICE)[0] if lines else 'no reason given'}"


def _again(error: BaseException, root: BaseException) -> bool:
    """A worker group that failed has used up Train's budget; what waited in vain for room has used up its time."""
    if isinstance(error, (WorkerGroupError, TaskCancelledError)) or type(root).__name__ in _TRAIN_TIMEOUTS:
        return False
    infrastructure = isinstance(error, (ControllerError, PreemptionError)) or _is_rays_own(error)
    return infrastructure or _cause(root) in ("storage", "out_of_memory")


def _is_rays_own(error: BaseException) -> bool:
    return isinstance(error, RayError) and not isinstance(error, RayTaskError)


def _root(error: BaseException) -> tuple[int | None, BaseException]:
    """Return what lies within Train's wrappers, with the rank of the worker it befell."""
    if isinstance(error, WorkerGroupError) and error.worker_failures:
        return _most_telling(error.worker_failures)
    if isinstance(error, ControllerError):
        return None, _unwrapped(error.controller_failure)
    return None, _unwrapped(error)


def _most_telling(failures: dict[int, Exception]) -> tuple[int, BaseException]:
    roots = [(rank, _unwrapped(failure)) for rank, failure in sorted(failures.items())]
    return min(roots, key=lambda found: _place(_cause(found[1])))


def _place(cause: Cause) -> int:
    return _TELLING.index(cause) if cause in _TELLING else len(_TELLING)


def _unwrapped(error: BaseException) -> BaseException:
    error = _task_error(error)
    for wrapped in ("health_check_failure", "_base_exc"):
        inner = getattr(error, wrapped, None)
        if isinstance(inner, BaseException):
            return _unwrapped(inner)
    return error


def _task_error(error: BaseException) -> BaseException:
    """Return what a task raised; Ray keeps it beside a text that it makes of it."""
    inner = error.cause if isinstance(error, RayTaskError) else None
    return _task_error(inner) if isinstance(inner, BaseException) else error


def _cause(root: BaseException) -> Cause:
    if isinstance(root, RayActorError):
        if root.preempted:
            return "node_lost"
        text = str(root)
        found: list[Cause] = [cause for words, cause in _WORDS if words in text]
        if found:
            return found[0]
    for kinds, cause in _KINDS:
        if isinstance(root, kinds):
            return cause
    if type(root).__name__ in _TRAIN_TIMEOUTS:
        return "timeout"
    return cause_of(root) if isinstance(root, Exception) else "exception"


def _reason(root: BaseException) -> str:
    """Return one line; an exception that still knows where it was raised says so."""
    if isinstance(root, Exception) and not isinstance(root, RayError) and root.__traceback__ is not None:
        return reason_of(root)
    return last_line(root)
