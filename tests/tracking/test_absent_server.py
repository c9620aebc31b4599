"""A server that is away for a while, away from the start, or slower than its clients wait."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient

from sfora_ray.errors import TrackerError
from sfora_ray.pack.following import following
from sfora_ray.pack.mirror import Mirror
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.tracking.base import MetricPoint
from sfora_ray.tracking.mlflow import MlflowOptions
from sfora_ray.workflows.finish import tell_within
from tests.tracking.packs import epoch, expected, finish, history, paper_pack, shown
from tests.tracking.servers import Proxy, Server, free_port, proxied

PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that the tests of this file share; the first starts and stops it and leaves it running."""
    server = Server(tmp_path_factory.mktemp("mortal"))
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def proxy(mortal: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy before the server, and clients that wait as long as a busy machine may take."""
    mortal.start()
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    with proxied(mortal.uri) as between:
        yield between


def mirror_of(run: RunFolder) -> Mirror:
    return Mirror(run, run.manifest().config.tracking.build())


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.3)


def test_a_server_that_comes_goes_and_comes_back_has_every_point_once(mortal: Server, tmp_path: Path) -> None:
    run = paper_pack(tmp_path, mortal.uri, "away")
    specs = run.specs()
    longest: list[float] = []
    done = threading.Event()

    def train() -> None:
        while not done.wait(0.2):
            start = time.perf_counter()
            for spec in specs:
                run.member(spec).append_epoch(epoch(len(longest) + 1))
            longest.append(time.perf_counter() - start)

    def told() -> int:
        first = shown(mortal.uri, "away").get("m00")
        return len(history(mortal.uri, first[0])) if first else 0

    trainer = threading.Thread(target=train)
    mirror = mirror_of(run)
    with following(mirror, every_seconds=0.1):
        trainer.start()
        try:
            wait_until(lambda: len(longest) > 4)  # away from the start
            mortal.start()
            wait_until(lambda: told() > 4)
            mortal.stop()
            before = len(longest)
            wait_until(lambda: len(longest) > before + 4)
            mortal.start()
        finally:
            done.set()
            trainer.join()
        for spec in specs:
            finish(run, spec)
        assert tell_within(run, mirror, "FAILED", say=print)
    assert statistics.median(longest) < 0.5  # not the longest, which the machine decides
    parts = shown(mortal.uri, "away")
    assert {part: len(runs) for part, runs in parts.items()} == {"pack": 1, "m00": 1, "m01": 1}
    assert abs(int(parts["pack"][0].data.tags["sfora.heartbeat"]) / 1000 - time.time()) < 300
    for part in ("m00", "m01"):
        assert history(mortal.uri, parts[part][0]) == expected(len(longest))
        assert parts[part][0].info.status == "FINISHED"


@pytest.mark.parametrize(("status", "seconds"), [("KILLED", 3.0), ("FINISHED", 3.0)])
def test_an_end_waits_for_the_tracker_no_longer_than_it_says(status: str, seconds: float, tmp_path: Path) -> None:
    run = paper_pack(tmp_path, f"http://127.0.0.1:{free_port()}", "never")
    said: list[str] = []
    start = time.monotonic()
    assert not tell_within(run, mirror_of(run), status, say=said.append, seconds=seconds)  # type: ignore[arg-type]
    assert time.monotonic() - start < seconds + 8
    assert f"sfora-ray mlflow sync {run.path}" in said[-1]
    assert "does not answer" in said[-1]


def test_a_batch_that_was_stored_unheard_is_not_told_twice(proxy: Proxy, mortal: Server, tmp_path: Path) -> None:
    run = paper_pack(tmp_path, proxy.uri, "stored")
    mirror = mirror_of(run)
    mirror.open()
    (first, _) = run.specs()
    for number in (1, 2):
        run.member(first).append_epoch(epoch(number))
    proxy.drop("runs/log-batch")
    with pytest.raises(TrackerError, match="refused metrics"):
        mirror.follow()
    proxy.spare()
    # The member was resumed meanwhile and has trained its last epoch again, at another time.
    run.member(first).epochs_path.unlink()
    for record in (epoch(1), epoch(2).model_copy(update={"time_ms": 9}), epoch(3)):
        run.member(first).append_epoch(record)
    mirror.follow()
    assert history(mortal.uri, shown(mortal.uri, "stored")["m00"][0]) == expected(3)


@pytest.mark.parametrize("late", [False, True])
def test_lost_and_late_answers_double_neither_runs_nor_points(
    late: bool, proxy: Proxy, mortal: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = f"late-{late}"
    run = paper_pack(tmp_path, proxy.uri, experiment)
    for spec in run.specs():
        for number in (1, 2, 3):
            run.member(spec).append_epoch(epoch(number))
    mirror = mirror_of(run)
    for victim in ("runs/create", "runs/log-batch"):
        proxy.drop(victim)
        if late:
            proxy.delay(victim, seconds=2.5)
            monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")
        with pytest.raises(TrackerError, match="refused"):
            for _ in mirror.turn():
                pass
        proxy.spare()
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    mirror.open()
    mirror.follow()
    parts = shown(mortal.uri, experiment)
    assert {part: len(runs) for part, runs in parts.items()} == {"pack": 1, "m00": 1, "m01": 1}
    parent = parts["pack"][0].info.run_id
    for part in ("m00", "m01"):
        assert parts[part][0].data.tags["mlflow.parentRunId"] == parent
        assert history(mortal.uri, parts[part][0]) == expected(3)


def test_of_runs_with_one_key_the_oldest_stays(proxy: Proxy, mortal: Server) -> None:
    tracker = MlflowOptions(uri=proxy.uri, experiment="doubles").build()
    first = tracker.open_run("p/m00", "m00", parent=None, tags={})
    time.sleep(0.01)  # the twin is younger
    client = MlflowClient(mortal.uri)
    experiment = client.get_run(first).info.experiment_id
    twin = client.create_run(experiment, tags={"sfora.key": "p/m00"}).info.run_id
    assert tracker.open_run("p/m00", "m00", parent=None, tags={}) == first
    tracker.log_metrics(first, [MetricPoint("loss", 1.0, 1, 1)])
    assert [run.info.run_id for run in shown(mortal.uri, "doubles")["m00"]] == [first]
    assert client.get_run(twin).info.status == "KILLED"
