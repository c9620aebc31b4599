import time
from pathlib import Path

import numpy as np
import pytest
import ray

from sfora_ray.cluster.backend import collective_backend
from sfora_ray.cluster.capacity import free_resources
from sfora_ray.cluster.held import held_after_all
from sfora_ray.cluster.launcher import ClusterMembers
from sfora_ray.cluster.leftovers import train_actors
from sfora_ray.config.pack import ResourceOptions
from sfora_ray.errors import ResourceError, SforaError
from sfora_ray.folds import Moments
from sfora_ray.pack.local import blocks_from_folder
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.run_pack import run_pack
from tests.cluster.conftest import Launch, new_run, under_way, watch
from tests.tiny import STEPS_PER_EPOCH, tiny_config
from tests.tiny_runs import train_here

pytestmark = pytest.mark.ray


def test_two_members_at_a_time_on_two_gpus(launch: Launch) -> None:
    assert max(under_way(states) for states in launch.history) == 2
    first = launch.history[0]
    assert [first[spec.id] for spec in (*launch.specs, launch.broken)] == ["starting", "starting", "queued", "queued"]


def test_members_are_seen_running_and_finish(launch: Launch) -> None:
    assert [launch.history[-1][spec.id] for spec in launch.specs] == ["finished"] * 3
    for spec in launch.specs:
        seen = list(dict.fromkeys(states[spec.id] for states in launch.history))
        order = ["queued", "starting", "running", "finished"]
        assert seen == sorted(seen, key=order.index)


def test_each_member_has_a_gpu_of_its_own(launch: Launch) -> None:
    given = [launch.run.results()[spec.id].accelerators for spec in launch.specs]
    assert sorted(given[:2]) == [("0",), ("1",)]
    assert given[2] in given[:2]


def test_a_member_that_fails_is_a_result_and_harms_no_other(launch: Launch) -> None:
    result = launch.run.member(launch.broken).result()
    assert result is not None
    assert (result.status, launch.history[-1]["m03"]) == ("failed", "failed")
    assert "nothing: not a folder" in result.reason


def test_the_bits_are_those_of_members_trained_one_by_one(launch: Launch, images: Path, tmp_path: Path) -> None:
    alone = train_here(tiny_config(images, tmp_path, "seeds=[0, 1, 2]", "resources.gpus_per_worker=1"))
    assert alone.path.name == launch.run.path.name
    for spec in launch.specs:
        for name in ("embeddings.train.npz", "embeddings.test.npz", "model.safetensors"):
            expected = (alone.member(spec).path / name).read_bytes()
            assert (launch.run.member(spec).path / name).read_bytes() == expected, (spec.id, name)


def test_blocks_come_through_the_store_unchanged_and_read_only(launch: Launch) -> None:
    gathered = launch.members.gather(launch.specs)
    read = blocks_from_folder(launch.run, launch.specs)
    for here, there in ((gathered.train, read.train), (gathered.test, read.test)):
        assert np.array_equal(here.ids, there.ids)
        assert np.array_equal(here.labels, there.labels)
        for block, expected in zip(here.blocks, there.blocks, strict=True):
            assert np.array_equal(block, expected)
            assert not block.flags.writeable
    sums = launch.members.moments(gathered)
    assert np.array_equal(sums.gram, Moments.of(read.train.blocks, read.train.labels).gram)


def test_resources_are_free_after_the_last_member(launch: Launch) -> None:
    assert held_after_all() == []


@pytest.mark.usefixtures("cluster")
def test_half_a_gpu_lets_four_members_start(images: Path, tmp_path: Path) -> None:
    run = new_run(tiny_config(images, tmp_path, "seeds=[0, 1, 2, 3, 4, 5]", "resources.gpus_per_worker=0.5"))
    members = ClusterMembers(run, run.specs())
    try:
        assert list(members.poll().values()) == ["starting"] * 4 + ["queued"] * 2
        assert under_way(members.poll()) == 4
    finally:
        members.stop()
    assert held_after_all() == []


@pytest.mark.usefixtures("cluster")
def test_stop_ends_a_running_member_and_frees_its_gpu(images: Path, tmp_path: Path) -> None:
    endless = ("training.epochs=100000", "training.evaluate_every=100000")
    run = new_run(tiny_config(images, tmp_path, "seeds=[0]", *endless, "resources.gpus_per_worker=2"))
    members = ClusterMembers(run, run.specs())
    assert watch(members, until="running")[-1] == {"m00": "running"}
    assert free_resources()["GPU"] == 0
    begun = time.monotonic()
    members.stop()
    assert time.monotonic() - begun < 60
    assert train_actors() == []
    assert held_after_all() == []
    assert run.results() == {}
    folder = run.member(run.specs()[0])
    assert not folder.stop_path.exists()
    (end,) = [event for event in folder.attempts() if event.event == "ended"]
    assert end.reason.startswith("stopped at epoch")
    members.stop()
    assert members.poll() == {"m00": "stopped"}


@pytest.mark.usefixtures("cluster")
def test_two_workers_train_as_one(images: Path, tmp_path: Path) -> None:
    """With BatchNorm frozen a batch in two halves has the gradients of the whole."""
    frozen = ("seeds=[0]", "model.frozen_batch_norm=true")
    two = tiny_config(images, tmp_path, *frozen, "resources.workers_per_member=2")
    one = tiny_config(images, tmp_path, *frozen)
    run, alone = new_run(two), train_here(one)
    assert watch(ClusterMembers(run, run.specs()))[-1] == {"m00": "finished"}
    (there,), (here,) = run.specs(), alone.specs()
    assert [record.step for record in run.member(there).epochs()] == [STEPS_PER_EPOCH, 2 * STEPS_PER_EPOCH]
    expected = alone.embeddings(here, "test").embeddings
    np.testing.assert_allclose(run.embeddings(there, "test").embeddings, expected, atol=1e-4)
    untrained = train_here(tiny_config(images, tmp_path, *frozen, "optimizer.lr=1e-9"))
    assert np.abs(untrained.embeddings(untrained.specs()[0], "test").embeddings - expected).max() > 1e-2


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("resources", "needed"),
    [
        ("{gpus_per_worker: 3}", "needs 1 CPU, 3 GPU"),
        ("{cpus_per_worker: 6}", "needs 6 CPU"),
        ("{cpus_per_worker: 3, workers_per_member: 2}", "needs 6 CPU (2 worker(s) of 3 CPU"),
        ("{memory_gigabytes_per_worker: 1e+6}", "needs 1 CPU, 1e+06 GB memory"),
    ],
)
def test_a_member_that_can_never_run_is_refused(resources: str, needed: str, images: Path, tmp_path: Path) -> None:
    config = tiny_config(images, tmp_path, f"resources={resources}")
    with pytest.raises(ResourceError) as caught:
        run_pack(config, Launcher(local=False), watch=lambda _: None, say=lambda _: None)
    assert needed in str(caught.value)
    assert "1 node(s) with 5 CPU, 2 GPU" in str(caught.value)
    assert not config.output_folder.exists()


@ray.remote
class Holder:
    """Holds resources until it is killed."""

    def holds(self) -> bool:
        return True


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("held", "needs", "free"),
    [
        ({"num_cpus": 1}, "resources.cpus_per_worker=5", "5 CPU; free now: 4 CPU, 2 GPU"),
        (
            {"num_cpus": 0, "num_gpus": 2},
            "resources.gpus_per_worker=1",
            "1 CPU, 1 GPU; free now: 5 CPU, 0 GPU",
        ),
    ],
)
def test_waiting_ends_with_what_is_missing(
    held: dict[str, int], needs: str, free: str, images: Path, tmp_path: Path
) -> None:
    holder = Holder.options(**held).remote()  # type: ignore[attr-defined]
    assert ray.get(holder.holds.remote(), timeout=60)
    run = new_run(tiny_config(images, tmp_path, "seeds=[0]", needs, "resources.schedule_timeout_seconds=1"))
    try:
        with pytest.raises(SforaError, match=r"waited 1 s \(resources.schedule_timeout_seconds\)") as caught:
            _launch_and_watch(run)
    finally:
        ray.kill(holder)
    assert f"{free} of 5 CPU, 2 GPU." in str(caught.value)
    assert "pack resume" in str(caught.value)
    assert held_after_all() == []


def _launch_and_watch(run: RunFolder) -> None:
    members = ClusterMembers(run, run.specs())
    try:
        watch(members)
    finally:
        members.stop()


@pytest.mark.usefixtures("cluster")
def test_gloo_where_gpus_are_only_logical() -> None:
    assert collective_backend(ResourceOptions(gpus_per_worker=1)) == "gloo"
