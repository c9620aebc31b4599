from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sfora_ray.tracking.quiet import quieten_mlflow
from tests.tiny_runs import PANDAS_OF_MLFLOW
from tests.tracking.servers import Server

if TYPE_CHECKING:
    from tests.browser.chromium import Browser
    from tests.browser.shown import Shown

quieten_mlflow()


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An MLflow server that is still to be started; not made where there is no browser."""
    from tests.browser.chromium import programs

    programs()
    made = Server(tmp_path_factory.mktemp("shown"))
    yield made
    made.stop()


@pytest.fixture(scope="package")
def shown(server: Server, images: Path, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """Two packs and a sweep on a server; tests read them and change nothing."""
    from tests.browser.shown import (
        Shown,
        compare_and_tell,
        fold_and_tell,
        grow,
        pack_of,
        runs_of,
        sweep_of,
        tell_sweep,
    )

    place = tmp_path_factory.mktemp("runs")
    with ThreadPoolExecutor(1) as pool, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_OF_MLFLOW)
        starting = pool.submit(server.start)
        pack = pack_of(images, place, "grown", server.uri)
        other = pack_of(images, place, "plain", server.uri, "recipe={name: plain}")
        sweep = sweep_of(pack.manifest().config)
        starting.result()
        fold_and_tell(pack)
        grow(pack, seed=7)
        fold_and_tell(pack)
        fold_and_tell(other)
        tell_sweep(sweep)
        comparison = compare_and_tell([other, pack], place / "compare")
    experiment, runs = runs_of(server.uri)
    return Shown(server.uri, experiment, pack, other, sweep, comparison, runs)


@pytest.fixture(scope="package")
def browser(server: Server, shown: Shown, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One window for all tests; what it showed is kept in ``SFORA_SCREENSHOTS`` or below pytest's folder."""
    from tests.browser.chromium import chromium

    kept = os.environ.get("SFORA_SCREENSHOTS")
    with chromium(server.uri, Path(kept) if kept else tmp_path_factory.mktemp("pictures")) as window:
        window.choose_model_training()
        yield window
