"""One process at a time writes a run in an object store.

A store has no locks that end with their holder, so the holder renews an object, ``run.lease``, as long as it lives.
Whoever finds a lease waits and looks: one that is renewed has a living holder, one that is not for long enough is
free. No clocks are compared, except to pass over a lease of which the time is so old that no clock is that wrong.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from sfora_ray.errors import BusyError, StorageError
from sfora_ray.options import Options
from sfora_ray.storage.objects import ObjectStore

LEASE_NAME = "run.lease"

_log = logging.getLogger(__name__)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# Stores refuse requests of a clock that is wrong by a quarter of an hour: no lease of a living holder looks as old.
_SURELY_DEAD_SECONDS = 1800.0


class LeaseTimes(Options):
    """How a lease is kept, in seconds."""

    renew: float = 10.0
    stale: float = 60.0
    """A lease that was not renewed for so long is free."""
    settle: float = 0.5
    """Of several that take it at the same time, the last within so long has it."""
    look: float = 1.0
    """Between two looks at a lease that may be stale."""


_TIMES = LeaseTimes()


class Lease(Options):
    """What the object says."""

    token: str
    """New for each holder."""
    host: str
    boot: str
    """Tells two machines of one name apart, and a machine from itself before it was started again."""
    pid: int
    time: float
    """Unix time of the last renewal, by the holder's clock."""

    def __str__(self) -> str:
        """Return the holder in words."""
        return f"process {self.pid} on {self.host}"


@contextmanager
def held_lease(
    store: ObjectStore, times: LeaseTimes = _TIMES, *, on_loss: Callable[[], None] | None = None
) -> Iterator[None]:
    """Be the one process that writes the run until the block ends.

    Args:
        store: the place of the run.
        times: how the lease is kept.
        on_loss: called, from another thread, if the lease was taken over while this process could not renew it.

    Raises:
        BusyError: another process holds it and renews it.
        StorageError: the store does not answer or refuses.
    """
    token = _take(store, times)
    stop = threading.Event()
    keeper = threading.Thread(
        target=_keep, args=(store, token, times, stop, on_loss or (lambda: None)), name="lease", daemon=True
    )
    keeper.start()
    try:
        yield
    finally:
        stop.set()
        keeper.join(timeout=times.stale)
        _give_back(store, token)


def is_leased(store: ObjectStore, times: LeaseTimes = _TIMES) -> bool:
    """Return whether some process, perhaps this one, seems to write the run now; goes by clocks and waits for nothing.

    Raises:
        StorageError: the store does not answer or refuses.
    """
    lease = lease_holder(store)
    return lease is not None and not _is_dead_here(lease) and time.time() - lease.time < times.stale


def lease_holder(store: ObjectStore) -> Lease | None:
    """Return who writes the run, or was last seen to and left no word.

    Raises:
        StorageError: the store does not answer or refuses.
    """
    content = store.get(LEASE_NAME)
    if not content:
        return None
    try:
        return Lease.model_validate_json(content)
    except ValidationError:
        return None


def _take(store: ObjectStore, times: LeaseTimes) -> str:
    _wait_until_free(store, times)
    token = secrets.token_hex(8)
    _write(store, token)
    time.sleep(times.settle)
    now = lease_holder(store)
    if now is None or now.token != token:
        raise _busy(store, now)
    return token


def _wait_until_free(store: ObjectStore, times: LeaseTimes) -> None:
    """Return when nobody holds the lease.

    Raises:
        BusyError: it was renewed under our eyes.
    """
    found = lease_holder(store)
    if found is None or _is_dead_here(found) or time.time() - found.time > max(_SURELY_DEAD_SECONDS, times.stale):
        return
    _log.warning("%s: waiting whether %s still holds the run, %g s at most", store.address, found, times.stale)
    end = time.monotonic() + times.stale
    while time.monotonic() < end:
        time.sleep(times.look)
        now = lease_holder(store)
        if now is None:
            return
        if now != found:
            raise _busy(store, now)


def _keep(
    store: ObjectStore, token: str, times: LeaseTimes, stop: threading.Event, on_loss: Callable[[], None]
) -> None:
    while not stop.wait(times.renew):
        try:
            # Absent as well: another may have taken it, worked, and given it back. But a store may err once.
            now = lease_holder(store) or _look_again(store, times, stop)
            if stop.is_set():
                return
            if now is None or now.token != token:
                _log.error("%s: %s has taken over this run", store.address, now or "another process")
                on_loss()
                return
            _write(store, token)
        except StorageError as error:  # nobody else can take it from a store that is away
            _log.warning("the lease was not renewed: %s", error)


def _look_again(store: ObjectStore, times: LeaseTimes, stop: threading.Event) -> Lease | None:
    stop.wait(times.look)
    return lease_holder(store)


def _give_back(store: ObjectStore, token: str) -> None:
    """Delete the lease if it is still ours; a store that is away keeps it until it is stale."""
    with contextlib.suppress(StorageError):
        now = lease_holder(store)
        if now is not None and now.token == token:
            store.delete(LEASE_NAME)


def _write(store: ObjectStore, token: str) -> None:
    lease = Lease(token=token, host=socket.gethostname(), boot=_boot(), pid=os.getpid(), time=time.time())
    store.put(LEASE_NAME, lease.model_dump_json().encode())


def _is_dead_here(lease: Lease) -> bool:
    """Return whether the holder was a process of this machine and is no more."""
    if (lease.host, lease.boot) != (socket.gethostname(), _boot()) or not lease.boot:
        return False
    try:
        os.kill(lease.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _boot() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _busy(store: ObjectStore, holder: Lease | None) -> BusyError:
    who = holder or "another process"
    return BusyError(f"{store.address}: is being written by {who}. Wait until it has ended, or stop it.")
