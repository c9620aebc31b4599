"""Two members in processes of their own, gathered, folded and summarised."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sfora_ray.config.pack import ResourceOptions
from sfora_ray.errors import ResourceError
from sfora_ray.pack.curve import size_curve
from sfora_ray.pack.folding import fold_pack
from sfora_ray.pack.local import LocalMembers, places
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summarize import summarize
from sfora_ray.pack.summary import Summary
from tests.pack.conftest import Trained, poll_until_done
from tests.tiny import CLASSES, IMAGES_PER_CLASS, tiny_config

ROWS = CLASSES * IMAGES_PER_CLASS // 2


def test_members_queue_run_and_finish(trained: Trained) -> None:
    assert trained.states[0] == {"m00": "running", "m01": "queued"}
    assert {"m00": "finished", "m01": "running"} in trained.states
    assert trained.states[-1] == {"m00": "finished", "m01": "finished"}


def test_only_the_first_member_decodes(trained: Trained) -> None:
    results = trained.run.results()
    assert [results[key].images_decoded for key in ("m00", "m01")] == [2 * ROWS, 0]
    assert results["m00"].device == "cpu"


def test_the_blocks_are_the_members_files(trained: Trained) -> None:
    blocks = trained.blocks
    assert [spec.id for spec in blocks.members] == ["m00", "m01"]
    for spec, block in zip(blocks.members, blocks.test.blocks, strict=True):
        assert np.array_equal(block, trained.run.embeddings(spec, "test").embeddings)
    assert blocks.train.blocks[0].shape == blocks.test.blocks[0].shape == (ROWS, 8)
    assert not np.array_equal(blocks.test.blocks[0], blocks.test.blocks[1])


def test_the_moments_are_those_of_the_train_blocks(trained: Trained) -> None:
    rows = np.concatenate(trained.blocks.train.blocks, axis=1).astype(np.float64)
    np.testing.assert_allclose(trained.moments.gram, rows.T @ rows, atol=1e-4)


def test_the_worker_log_is_in_the_members_folder(trained: Trained) -> None:
    for spec in trained.run.specs():
        assert trained.run.member(spec).log_path.is_file()


def test_the_summary_holds_both_members_and_survives_json(trained: Trained) -> None:
    run = trained.run
    config = run.manifest().config
    outcomes = fold_pack(trained.blocks, trained.moments, config.folds, config.evaluation, "cpu")
    run.write_folds(outcomes)
    curve = size_curve(trained.blocks.test, config.evaluation, "cpu")
    facts = [outcome.facts for outcome in outcomes]
    summary = summarize(run, trained.blocks, run.dataset_digest(), curve, facts)
    run.write_summary(summary)
    assert run.summary() == summary
    assert Summary.model_validate(json.loads(summary.model_dump_json())) == summary
    assert {path.name for path in run.folds_path.glob("*")} == {
        f"{name}.{kind}" for name in ("concat", "mean", "gpa", "wccn") for kind in ("json", "safetensors")
    }
    recalls = [run.results()[key].metrics["recall_at_1"] for key in ("m00", "m01")]
    assert summary.single["recall_at_1"].mean == pytest.approx(np.mean(recalls))
    assert summary.pack_curve[0].metrics["recall_at_1"] == pytest.approx(np.mean(recalls))
    assert summary.pack_curve[-1].metrics["recall_at_1"] == pytest.approx(facts[0].metrics["recall_at_1"])
    assert (summary.pack.num_members, summary.pack.num_planned, summary.pack.num_queries) == (2, 2, ROWS)


def test_a_member_without_data_fails_and_the_pack_goes_on(tmp_path: Path) -> None:
    run = RunFolder.create(tiny_config(tmp_path / "nowhere", tmp_path, "seeds=[1]"), weights="none")
    members = LocalMembers(run, run.specs())
    assert list(poll_until_done(members))[-1] == {"m00": "failed"}
    assert "not a folder" in run.results()["m00"].reason
    assert "Traceback" in run.member(run.specs()[0]).log_path.read_text()


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ({"workers_per_member": 2}, "one process, got 2"),
        ({"cpus_per_worker": 100_000}, "CPUs, got 100000"),
        ({"gpus_per_worker": 64}, "GPUs, got 64"),
    ],
)
def test_more_than_the_machine_has_is_refused(resources: dict[str, float], said: str) -> None:
    with pytest.raises(ResourceError) as caught:
        places(ResourceOptions.model_validate(resources))
    assert said in str(caught.value)


def test_concurrency_can_be_limited() -> None:
    assert places(ResourceOptions(max_concurrent_members=1)) == 1
    assert places(ResourceOptions()) >= 1
