"""What every entry of the tracker table owes: telling twice is telling once, and nothing is sent before it is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfora_ray.tracking import TRACKERS, MetricPoint, TrackingOptions

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


def options_of(name: str, folder: Path) -> TrackingOptions:
    address = {"uri": f"sqlite:///{folder}/mlflow.db"} if "uri" in TRACKERS[name].model_fields else {}
    return TRACKERS[name].model_validate(address)


@pytest.mark.parametrize("name", TRACKERS)
def test_its_options_know_the_name_it_is_listed_under(name: str) -> None:
    assert TRACKERS[name].model_fields["name"].default == name


@pytest.mark.parametrize("name", TRACKERS)
def test_building_sends_and_writes_nothing(name: str, tmp_path: Path) -> None:
    options_of(name, tmp_path).build()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", TRACKERS)
def test_a_pack_can_be_told_twice(name: str, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("<p>report</p>")
    tracker = options_of(name, tmp_path).build()
    tracker.check()
    seen = []
    for _ in range(2):
        parent = tracker.open_run("pack", "pack", parent=None, tags={"a": "b"})
        child = tracker.open_run("pack/m00", "m00", parent=parent, tags={})
        tracker.log_params(child, {"loss.tau": "32"})
        tracker.set_tags(child, {"sfora.status": "finished"})
        tracker.log_metrics(child, [MetricPoint("loss", 1.0 / step, step, 1000 + step) for step in (1, 2)])
        tracker.log_dataset(parent, "photos", "abc", "train")
        tracker.log_file(parent, tmp_path / "report.html", "report")
        tracker.close_run(child, "FINISHED")
        tracker.close_run(parent, "FAILED")
        seen.append((parent, child))
    assert seen[0] == seen[1]
    assert len(set(seen[0])) == 2
