import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from sfora_ray.errors import BusyError
from sfora_ray.storage import ObjectStore, held_lease, is_leased, lease_holder
from sfora_ray.storage.lease import LEASE_NAME, Lease, LeaseTimes
from tests.storage.server import S3Server

QUICK = LeaseTimes(renew=0.1, stale=2.0, settle=0.05, look=0.05)


def put_lease(store: ObjectStore, *, host: str, pid: int = 1, age: float = 0.0, token: str = "theirs") -> None:
    lease = Lease(token=token, host=host, boot="another", pid=pid, time=time.time() - age)
    store.put(LEASE_NAME, lease.model_dump_json().encode())


def comes_of(act: Callable[[], None], event: threading.Event) -> bool:
    """Act until it has come to that: a renewal that is under way just then undoes what was done."""
    for _ in range(10):
        act()
        if event.wait(10 * QUICK.renew):
            return True
    return False


def test_a_lease_lasts_as_long_as_the_block(store: ObjectStore) -> None:
    assert not is_leased(store)
    with held_lease(store, QUICK):
        holder = lease_holder(store)
        assert holder is not None
        assert holder.pid == os.getpid()
        time.sleep(1.0)
        renewed = lease_holder(store)
        assert renewed is not None
        assert renewed.time > holder.time
        assert is_leased(store, QUICK)
    assert not is_leased(store)
    assert store.listing() == {}


def test_a_living_holder_is_not_disturbed(store: ObjectStore) -> None:
    with held_lease(store, QUICK):
        started = time.monotonic()
        with (
            pytest.raises(BusyError, match=f"{store.address}: is being written by process {os.getpid()} on "),
            held_lease(store, QUICK),
        ):
            pass
        assert time.monotonic() - started < QUICK.stale + 5
        assert is_leased(store, QUICK)


def test_a_holder_that_has_stopped_renewing_is_succeeded(store: ObjectStore) -> None:
    put_lease(store, host="elsewhere")
    started = time.monotonic()

    with held_lease(store, QUICK):
        assert time.monotonic() - started >= QUICK.stale
        holder = lease_holder(store)
        assert holder is not None
        assert holder.token != "theirs"


@pytest.mark.parametrize("age", [86_400.0, None])
def test_an_ancient_lease_or_a_damaged_one_is_not_waited_for(store: ObjectStore, age: float | None) -> None:
    slow = LeaseTimes(renew=0.1, stale=30, settle=0.05, look=0.05)
    if age is None:
        store.put(LEASE_NAME, b"{")
    else:
        put_lease(store, host="elsewhere", age=age)
    started = time.monotonic()
    with held_lease(store, slow):
        assert time.monotonic() - started < 15


def test_a_holder_killed_on_this_machine_is_succeeded_at_once(store: ObjectStore) -> None:
    program = (
        "import sys, time\n"
        "from sfora_ray.storage import ObjectStore, held_lease\n"
        "with held_lease(ObjectStore(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, store.address], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert is_leased(store)
        process.kill()
        process.wait()

    assert not is_leased(store)
    started = time.monotonic()
    with held_lease(store):
        assert time.monotonic() - started < 30


def test_of_several_that_come_at_once_one_has_it(store: ObjectStore) -> None:
    times = LeaseTimes(renew=0.1, stale=5.0, settle=0.5, look=0.05)
    gate = threading.Barrier(4)
    ends: list[str] = []

    def come() -> None:
        gate.wait()
        try:
            with held_lease(store, times):
                ends.append("held")
                time.sleep(1.5)
        except BusyError:
            ends.append("busy")

    threads = [threading.Thread(target=come) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["busy", "busy", "busy", "held"]


def test_a_holder_that_was_succeeded_is_told_and_leaves_the_lease(store: ObjectStore) -> None:
    lost = threading.Event()
    with held_lease(store, QUICK, on_loss=lost.set):
        assert comes_of(lambda: put_lease(store, host="elsewhere"), lost)
    holder = lease_holder(store)
    assert holder is not None
    assert holder.token == "theirs"


def test_a_lease_that_is_gone_is_lost(store: ObjectStore) -> None:
    lost = threading.Event()
    with held_lease(store, QUICK, on_loss=lost.set):
        assert comes_of(lambda: store.delete(LEASE_NAME), lost)
        time.sleep(3 * QUICK.renew)
        assert lease_holder(store) is None, "another may take it now"


def test_a_lease_that_seems_to_be_gone_once_is_not_lost(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    lost, read = threading.Event(), store.get
    answers: list[Callable[[str], bytes | None]] = [lambda _: b"{", read, lambda _: None, read]

    with held_lease(store, QUICK, on_loss=lost.set):
        monkeypatch.setattr(store, "get", lambda name: (answers.pop(0) if answers else read)(name))
        time.sleep(1.0)
        assert not answers
        assert is_leased(store, QUICK)
    assert not lost.is_set()


def test_a_store_that_is_away_for_a_while_costs_no_lease(store: ObjectStore, s3: S3Server) -> None:
    lost = threading.Event()
    with held_lease(store, QUICK, on_loss=lost.set):
        s3.always = (503, "")
        time.sleep(1.0)
        s3.always = None
        before = lease_holder(store)
        time.sleep(0.5)
        after = lease_holder(store)
        assert before is not None
        assert after is not None
        assert after.token == before.token
        assert after.time > before.time
    assert not lost.is_set()
