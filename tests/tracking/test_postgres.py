"""A server over PostgreSQL, with nine packs telling at once: nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sfora_ray.pack.mirror import Mirror
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.tracking import patience
from tests.tracking.packs import epoch, expected, finish, history, paper_pack, shown
from tests.tracking.servers import postgres, serving

WRITERS = 9


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("psycopg2", reason="the driver of PostgreSQL is not installed")
    folder = tmp_path_factory.mktemp("postgres")
    with postgres() as database, serving(folder, database) as running:
        yield running.uri


def test_nine_packs_telling_at_once_lose_nothing(server: str, tmp_path: Path) -> None:
    packs = [paper_pack(tmp_path, server, "nine", f"name=pack{number}", seeds=1) for number in range(WRITERS)]

    def tell(run: RunFolder) -> None:
        mirror = Mirror(run, run.manifest().config.tracking.build())
        mirror.open()
        (spec,) = run.specs()
        for number in range(1, 4):
            run.member(spec).append_epoch(epoch(number))
            mirror.follow()
        finish(run, spec)
        mirror.tell_members()
        mirror.close("FINISHED")

    with patience(), ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(tell, packs))
    parts = shown(server, "nine")
    assert {part: len(runs) for part, runs in parts.items()} == {"pack": WRITERS, "m00": WRITERS}
    parents = {run.info.run_id: run.data.tags["sfora.pack"] for run in parts["pack"]}
    assert len(set(parents.values())) == WRITERS
    for run in parts["m00"]:
        assert parents[run.data.tags["mlflow.parentRunId"]] == run.data.tags["sfora.pack"]
        assert history(server, run) == expected(3)
        assert run.info.status == "FINISHED"
