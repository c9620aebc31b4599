import pytest

from sfora_ray.comparison.records import Comparison
from sfora_ray.reporting.blocks import Block, walk
from sfora_ray.reporting.comparison import ComparisonPaths, write_comparison
from sfora_ray.reporting.comparison.report import comparison_document
from tests.reporting.comparison.synthetic import make_comparison


@pytest.fixture(scope="session")
def comparison() -> Comparison:
    return make_comparison()


@pytest.fixture(scope="session")
def blocks(comparison: Comparison) -> tuple[Block, ...]:
    sections = comparison_document(comparison).sections
    return walk(tuple(block for section in sections for block in section.blocks))


@pytest.fixture(scope="session")
def report(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> ComparisonPaths:
    return write_comparison(comparison, tmp_path_factory.mktemp("comparison"))


@pytest.fixture(scope="session")
def html(report: ComparisonPaths) -> str:
    return report.html.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def markdown(report: ComparisonPaths) -> str:
    return report.markdown.read_text(encoding="utf-8")
