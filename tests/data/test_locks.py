import fcntl
import logging
import threading
from pathlib import Path

import pytest

from sfora_ray.data import locks


def test_whoever_waits_says_so_and_then_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(locks, "_SECONDS_BEFORE_A_WORD", 0.1)
    path = tmp_path / "prepared.lock"
    held = threading.Event()
    with path.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        def wait() -> None:
            with locks.exclusive_lock(path):
                held.set()

        waiting = threading.Thread(target=wait)
        with caplog.at_level(logging.WARNING):
            waiting.start()
            assert not held.wait(0.5)
    assert held.wait(5)
    waiting.join()
    (said,) = caplog.messages
    assert said.startswith(f"{path}: waiting ")
