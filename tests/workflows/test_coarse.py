"""Coarse classes from the folder of photos to the summary of a pack."""

from __future__ import annotations

import numpy as np
import pytest

from sfora_ray.config.load import build_config
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.retrieval import score
from sfora_ray.workflows.refold import refold
from tests.tiny import CLASSES, tiny_values, write_images
from tests.tiny_runs import train_here

KEYS = {"coarse_recall_at_1", "coarse_map_at_r"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = tmp_path_factory.mktemp("coarse")
    images = write_images(folder / "images")
    rows = "".join(f"class{label:02d},kind{label % 4 // 2}\n" for label in range(CLASSES))
    (images / "classes.csv").write_text(f"folder,coarse_class\n{rows}")
    values = tiny_values(images, folder)
    values["data"]["coarse"] = {}
    run = train_here(build_config(values, place="tiny"))
    refold(run, (), say=lambda _: None)
    return run


def test_members_are_scored_on_coarse_classes_once_their_epoch_is_chosen(run: RunFolder) -> None:
    for spec, result in zip(run.specs(), run.results().values(), strict=True):
        table = run.embeddings(spec, "test")
        assert table.coarse_labels is not None
        kinds = [int(identifier[5:7]) % 4 // 2 for identifier in table.ids]
        assert np.array_equal(table.coarse_labels, kinds)
        expected = score(table.embeddings, table.coarse_labels, nmi=False)
        assert result.metrics["coarse_recall_at_1"] == pytest.approx(expected.recall_at_1)
        assert result.metrics["coarse_map_at_r"] == pytest.approx(expected.map_at_r)
        assert all(not KEYS & set(record.metrics["test"]) for record in run.member(spec).epochs())


def test_the_summary_and_the_report_show_them(run: RunFolder) -> None:
    summary = run.summary()
    assert set(summary.single) >= KEYS
    assert all(set(fold.metrics) >= KEYS for fold in summary.folds)
    assert "coarse R@1" in (run.path / "report" / "report.md").read_text(encoding="utf-8")
