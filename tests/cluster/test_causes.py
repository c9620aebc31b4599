import pickle
from collections.abc import Callable
from typing import Any

import pytest
from ray.exceptions import (
    ActorDiedError,
    ActorUnavailableError,
    GetTimeoutError,
    LocalRayletDiedError,
    NodeDiedError,
    ObjectStoreFullError,
    OutOfMemoryError,
    RayActorError,
    RayTaskError,
    TaskCancelledError,
    WorkerCrashedError,
)
from ray.train import ControllerError, PreemptionError, PreemptionInfo, WorkerGroupError
from ray.train.v2._internal.exceptions import (
    UserExceptionWithTraceback,
    WorkerGroupStartupFailedError,
    WorkerGroupStartupTimeoutError,
    WorkerHealthCheckFailedError,
    WorkerHealthCheckTimeoutError,
)

from sfora_ray.cluster.causes import cause_of_workers, end_of, last_line
from sfora_ray.errors import StorageError

DIED = "The actor is dead because its worker process has died. Worker exit type: "


def made(kind: Callable[..., Exception], *arguments: object) -> Exception:
    """Make an error whose constructor has no types."""
    return kind(*arguments)


def actor_died(text: str = DIED + "SYSTEM_ERROR Worker exit detail: End of file.", **more: Any) -> RayActorError:
    return RayActorError("0" * 32, f"The actor died unexpectedly.\n\tpid: 7\n{text}", **more)


def ill(error: Exception) -> WorkerHealthCheckFailedError:
    return WorkerHealthCheckFailedError("a worker failed its health check", error)


def raised(error: Exception) -> UserExceptionWithTraceback:
    return UserExceptionWithTraceback(error, "Traceback ...")


def group(**ranks: Exception) -> WorkerGroupError:
    return WorkerGroupError("workers failed", {int(rank[1:]): error for rank, error in ranks.items()})


@pytest.mark.parametrize(
    ("error", "cause", "again"),
    [
        (WorkerCrashedError(), "signal", True),
        (actor_died(), "signal", True),
        (ActorDiedError(), "signal", True),
        (ActorUnavailableError("gone", None), "node_lost", True),
        (made(OutOfMemoryError, "memory"), "out_of_memory", True),
        (actor_died(DIED + "NODE_OUT_OF_MEMORY Worker exit detail: too much."), "out_of_memory", True),
        (actor_died("Task was killed due to the node running low on memory."), "out_of_memory", True),
        (made(NodeDiedError, "gone"), "node_lost", True),
        (LocalRayletDiedError(), "node_lost", True),
        (actor_died("The actor died because its node has died. Node Id: 3"), "node_lost", True),
        (actor_died(preempted=True), "node_lost", True),
        (ObjectStoreFullError("full"), "storage", True),
        (GetTimeoutError("late"), "timeout", True),
        (StorageError("run: away"), "storage", True),
        (OSError(28, "No space left on device"), "storage", True),
        (MemoryError(), "out_of_memory", True),
        (ValueError("a defect"), "exception", False),
        (TaskCancelledError(), "exception", False),
        (ControllerError(actor_died()), "signal", True),
        (ControllerError(OSError(28, "No space left on device")), "storage", True),
        (ControllerError(WorkerGroupStartupFailedError("a worker died early")), "exception", True),
        (ControllerError(WorkerGroupStartupTimeoutError(1)), "timeout", False),
        (PreemptionError(PreemptionInfo(None, {"n": [0]})), "node_lost", True),
        (made(RayTaskError, "fit", "Traceback ...", actor_died()), "signal", True),
        (made(RayTaskError, "fit", "Traceback ...", ValueError("a defect")), "exception", False),
        (group(r0=ill(actor_died())), "signal", False),
        (group(r0=ill(actor_died(preempted=True))), "node_lost", False),
        (group(r0=raised(ValueError("a defect"))), "exception", False),
        (group(r0=raised(StorageError("run: away"))), "storage", False),
        (group(r0=made(WorkerHealthCheckTimeoutError, "hangs")), "timeout", False),
    ],
)
def test_kind_of_an_end_and_whether_to_try_again(error: Exception, cause: str, again: bool) -> None:
    end = end_of(error)
    assert (end.cause, end.again) == (cause, again)
    assert "\n" not in end.reason


@pytest.mark.parametrize(
    ("ranks", "cause", "begins"),
    [
        ({"r0": raised(RuntimeError("Connection closed by peer")), "r1": ill(actor_died())}, "signal", "worker 1: "),
        (
            {"r0": made(WorkerHealthCheckTimeoutError, "hangs"), "r2": ill(made(OutOfMemoryError, "m"))},
            "out_of_memory",
            "worker 2",
        ),
        ({"r0": ill(actor_died()), "r1": ill(made(NodeDiedError, "gone"))}, "node_lost", "worker 1: NodeDiedError"),
        ({"r3": raised(ValueError("a")), "r1": raised(ValueError("b"))}, "exception", "worker 1: ValueError: b"),
        ({"r0": raised(RuntimeError("closed")), "r1": raised(StorageError("run: away"))}, "storage", "worker 1"),
    ],
)
def test_the_worker_that_died_tells_more_than_those_that_fail_of_it(
    ranks: dict[str, Exception], cause: str, begins: str
) -> None:
    error = group(**ranks)
    assert cause_of_workers(error.worker_failures) == (end_of(error).cause, end_of(error).reason)
    assert end_of(error).cause == cause
    assert end_of(error).reason.startswith(begins)


def test_what_has_travelled_reads_the_same() -> None:
    error = group(r0=raised(ValueError("a defect")), r1=ill(actor_died()))
    assert end_of(pickle.loads(pickle.dumps(error))) == end_of(error)


def test_an_exception_says_where_it_was_raised() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        _ = 1 / 0
    reason = end_of(caught.value).reason
    assert reason.startswith("ZeroDivisionError: division by zero (test_causes.py:")


def test_the_last_line_is_the_cause_and_advice_is_left_out() -> None:
    text = DIED + "SYSTEM_ERROR Worker exit detail: End of file. Some common causes include: (1) a lot of text"
    assert last_line(actor_died(text)) == f"RayActorError: {DIED}SYSTEM_ERROR Worker exit detail: End of file."
    assert last_line(ValueError()) == "ValueError: no reason given"
