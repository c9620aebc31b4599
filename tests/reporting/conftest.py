from pathlib import Path

import pytest

from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.reporting import ReportPaths, write_report
from tests.reporting.synthetic import make_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pack")


@pytest.fixture(scope="module")
def run(folder: Path) -> RunFolder:
    return make_run(folder)


@pytest.fixture(scope="module")
def report(run: RunFolder, folder: Path) -> ReportPaths:
    return write_report(run, cache_dir=folder / "cache")


@pytest.fixture(scope="module")
def html(report: ReportPaths) -> str:
    return report.html.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def markdown(report: ReportPaths) -> str:
    return report.markdown.read_text(encoding="utf-8")
