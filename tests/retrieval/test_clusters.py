import numpy as np
import pytest

from sfora_ray.retrieval import kmeans_labels, normalized_mutual_information, score
from tests.retrieval.reference import load


@pytest.mark.parametrize("case", ["c0", "c1_balanced"])
def test_nmi_of_given_clusters(case: str) -> None:
    arrays = load("metrics")
    found = normalized_mutual_information(arrays[f"{case}/in/labels"], arrays[f"{case}/in/kmeans_labels"])
    assert found == pytest.approx(arrays[f"{case}/nmi/arithmetic"].item(), rel=1e-12)


def test_nmi_at_its_ends() -> None:
    labels = np.repeat(np.arange(4), 5)
    assert normalized_mutual_information(labels, 7 - labels) == pytest.approx(1)
    assert normalized_mutual_information(labels, np.tile(np.arange(5), 4)) == pytest.approx(0, abs=1e-12)
    assert normalized_mutual_information(labels, np.zeros(20, np.int64)) == 0
    assert normalized_mutual_information(np.zeros(3, np.int64), np.zeros(3, np.int64)) == 1


def test_clusters_are_found_and_repeat() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(5), 12)
    rows = (10 * np.eye(5)[labels] + rng.normal(size=(60, 5))).astype(np.float32)
    first = kmeans_labels(rows, 5, 3)
    assert np.array_equal(first, kmeans_labels(rows, 5, 3))
    assert score(rows, labels, nmi=True).nmi == pytest.approx(normalized_mutual_information(labels, first), abs=0.2)


def test_nmi_only_where_asked() -> None:
    rows, labels = np.eye(4, dtype=np.float32), np.array([0, 0, 1, 1])
    assert "nmi" in score(rows, labels).metrics()
    without = score(rows, labels, nmi=False)
    assert without.nmi is None
    assert "nmi" not in without.metrics()
