"""One member from spec to result, on twelve classes of eight images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from sfora_ray.arrays import EmbeddingTable, l2_normalize
from sfora_ray.config.member import MemberResult
from sfora_ray.losses.hist import Hist
from sfora_ray.randomness import torch_generator
from sfora_ray.retrieval import score
from sfora_ray.training.announcer import Announcer
from sfora_ray.training.boundary import member_result
from sfora_ray.training.epoch import train_epoch
from sfora_ray.training.evaluate import collapse_warning, mean_pairwise_cosine
from sfora_ray.training.member import train_member
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.parts import Parts, build_parts
from sfora_ray.training.preparation import prepare_data
from sfora_ray.training.worker import Worker
from tests.tiny import CLASSES, IMAGES_PER_CLASS, STEPS_PER_EPOCH, tiny_config, tiny_spec

PER_SPLIT = CLASSES * IMAGES_PER_CLASS // 2
OBJECTIVES = {"hist": "loss.name=hist", "proxy_anchor": "loss={name: proxy_anchor}"}


def train(images: Path, folder: Path, *overrides: str, seed: int = 5) -> MemberResult:
    config = tiny_config(images, folder.parent, *overrides)
    return train_member(tiny_spec(config, seed), MemberFolder(folder), Worker.alone())


def start(images: Path, folder: Path, *overrides: str) -> Parts:
    """Return the parts of a member before its first step."""
    config = tiny_config(images, folder, *overrides)
    data = prepare_data(config, silent)
    return build_parts(tiny_spec(config), data, Worker.alone(torch.device("cpu")))


def silent(done: int, total: int) -> None:
    """Say nothing of the progress."""


def last_state(folder: Path) -> dict[str, Tensor]:
    return load_file(max(folder.glob("checkpoint/step-*")) / "state.safetensors")


@pytest.fixture(scope="module")
def finished(images: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[MemberFolder, MemberResult]:
    folder = tmp_path_factory.mktemp("finished") / "member"
    return MemberFolder(folder), train(images, folder, "training.epochs=3")


def test_the_result_tells_what_became_of_it(finished: tuple[MemberFolder, MemberResult]) -> None:
    folder, result = finished
    assert (result.id, result.seed, result.status, result.selected_on) == ("m00", 5, "finished", "test")
    assert result.images_decoded == CLASSES * IMAGES_PER_CLASS
    assert result.images_per_second > 0
    assert result.train_seconds == pytest.approx(sum(record.seconds for record in folder.epochs()))
    assert len(result.dataset_digest) == 16


def test_epochs_are_recorded_with_losses_rates_and_metrics(finished: tuple[MemberFolder, MemberResult]) -> None:
    records = finished[0].epochs()
    assert [record.epoch for record in records] == [1, 2, 3]
    assert [record.step for record in records] == [STEPS_PER_EPOCH * epoch for epoch in (1, 2, 3)]
    assert all(set(record.loss) == {"total", "objective", "distillation"} for record in records)
    for record in records:
        assert record.loss["total"] == pytest.approx(record.loss["objective"] + record.loss["distillation"])
    assert [record.lr["backbone.decay"] for record in records] == [1e-3, 1e-3, 5e-4]
    assert [record.lr["hist.distributions"] for record in records] == [0.03, 0.03, 0.015]
    assert all(0 <= record.state["dead_variance_share"] <= 1 for record in records)


def test_the_number_of_the_best_epoch_is_that_of_the_saved_embeddings(
    finished: tuple[MemberFolder, MemberResult],
) -> None:
    folder, result = finished
    table = EmbeddingTable.load(folder.embeddings_path("test"))
    recalls = [record.metrics["test"]["recall_at_1"] for record in folder.epochs()]
    assert result.best_epoch == recalls.index(max(recalls)) + 1
    scored = score(table.embeddings, table.labels, nmi=True).metrics()
    assert scored == result.metrics
    assert scored["recall_at_1"] == max(recalls)
    cosines = table.embeddings.astype(float) @ table.embeddings.T.astype(float)
    np.fill_diagonal(cosines, -2)
    by_hand = np.mean(table.labels[cosines.argmax(1)] == table.labels)
    assert by_hand == pytest.approx(max(recalls))


@pytest.mark.parametrize("split", ["train", "test"])
def test_both_splits_are_embedded_as_unit_rows(finished: tuple[MemberFolder, MemberResult], split: Any) -> None:
    table = EmbeddingTable.load(finished[0].embeddings_path(split))
    assert table.embeddings.shape == (PER_SPLIT, 8)
    assert table.embeddings.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(table.embeddings, axis=1), 1, atol=1e-6)
    parity = {int(identifier.split("/")[0].removeprefix("class")) % 2 for identifier in table.ids.tolist()}
    assert parity == {0 if split == "train" else 1}


def test_the_model_file_makes_the_saved_embeddings(
    finished: tuple[MemberFolder, MemberResult], images: Path, tmp_path: Path
) -> None:
    folder, _ = finished
    parts = start(images, tmp_path)
    parts.embedder.load_state_dict(load_file(folder.model_path))
    parts.embedder.eval()
    source, table = parts.data.dataset.test, EmbeddingTable.load(folder.embeddings_path("test"))
    transform = parts.config.input.test_transform()
    with torch.no_grad():
        rows = [
            parts.embedder.embed(parts.to_device(transform(image)[None]))
            for image in map(source.images.__getitem__, range(5))
        ]
    alone = l2_normalize(torch.cat(rows).numpy())
    assert (alone * table.embeddings[:5]).sum(1).min() >= 1 - 1e-6


def test_the_second_member_decodes_nothing(images: Path, tmp_path: Path) -> None:
    first = train(images, tmp_path / "m00", "schedule.warmup_epochs=0", "training.epochs=1")
    second = train(images, tmp_path / "m01", "schedule.warmup_epochs=0", "training.epochs=1", seed=3)
    assert (first.images_decoded, second.images_decoded) == (CLASSES * IMAGES_PER_CLASS, 0)
    assert (tmp_path / "m00/model.safetensors").read_bytes() != (tmp_path / "m01/model.safetensors").read_bytes()


def test_one_spec_gives_the_same_bits_whatever_ran_before(
    finished: tuple[MemberFolder, MemberResult], images: Path, tmp_path: Path
) -> None:
    torch.manual_seed(123)
    np.random.seed(7)
    train(images, tmp_path / "again", "training.epochs=3")
    for name in ("model.safetensors", "embeddings.train.npz", "embeddings.test.npz"):
        assert (tmp_path / "again" / name).read_bytes() == (finished[0].path / name).read_bytes()


@pytest.mark.slow
def test_loader_processes_change_no_bit(images: Path, tmp_path: Path) -> None:
    alone, helped = (
        start(images, tmp_path, "schedule.warmup_epochs=0", f"training.loader_workers={count}") for count in (0, 2)
    )
    silent_announcer = Announcer(MemberFolder(tmp_path), 1, every_seconds=1.0, silent=True)
    outcomes = [train_epoch(parts, 1, silent_announcer) for parts in (alone, helped)]
    assert outcomes[0].loss == outcomes[1].loss
    weights = [parts.recipe.state_dict() for parts in (alone, helped)]
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_parameter_is_in_one_group_and_moves(images: Path, tmp_path: Path, objective: str) -> None:
    settings = [OBJECTIVES[objective], "schedule.warmup_epochs=0", "training.epochs=1"]
    parts = start(images, tmp_path, *settings)
    before = {name: value.clone() for name, value in parts.recipe.state_dict().items()}
    grouped = [id(parameter) for group in parts.optimizer.param_groups for parameter in group["params"]]
    learning = {name: p for name, p in parts.recipe.named_parameters() if not name.startswith("teacher.")}
    assert sorted(grouped) == sorted(map(id, learning.values()))
    train(images, tmp_path / "member", *settings)
    after = last_state(tmp_path / "member")
    still = [name for name in learning if torch.equal(after[f"recipe.{name}"], before[name])]
    assert still == []


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_narrow_precision_keeps_everything_in_float32(
    images: Path, tmp_path: Path, objective: str, precision: str
) -> None:
    settings = [
        OBJECTIVES[objective],
        "schedule.warmup_epochs=0",
        "training.epochs=1",
        f"training.precision={precision}",
    ]
    train(images, tmp_path / "member", *settings)
    state = last_state(tmp_path / "member")
    assert any(name.startswith("optimizer.") for name in state)
    assert {value.dtype for value in state.values() if value.is_floating_point()} == {torch.float32}
    assert EmbeddingTable.load(tmp_path / "member/embeddings.test.npz").embeddings.dtype == np.float32


def test_frozen_statistics_never_move_and_their_affine_weights_do(images: Path, tmp_path: Path) -> None:
    settings = ["model.frozen_batch_norm=true", "training.epochs=3"]
    initial = start(images, tmp_path, *settings).recipe.state_dict()
    train(images, tmp_path / "member", *settings)
    state = {name.removeprefix("recipe."): value for name, value in last_state(tmp_path / "member").items()}
    buffers = [name for name in initial if ".blocks." in name and ("running" in name or "tracked" in name)]
    assert len(buffers) == 24
    assert all(torch.equal(state[name], initial[name]) for name in buffers)
    affine = "backbone.blocks.0.1.weight"
    assert not torch.equal(state[f"base.student.{affine}"], initial[f"base.student.{affine}"])
    assert not torch.equal(state[f"teacher.{affine}"], initial[f"teacher.{affine}"])


def test_a_picture_alone_and_among_others_has_one_embedding(images: Path, tmp_path: Path) -> None:
    parts = start(images, tmp_path)
    batch = torch.rand(64, 3, 16, 16, generator=torch_generator(0))
    parts.recipe.train()
    parts.recipe.eval()
    with torch.no_grad():
        alone, among = parts.embedder.embed(batch[:1])[0], parts.embedder.embed(batch)[0]
    assert torch.cosine_similarity(alone, among, dim=0) >= 1 - 1e-6


def test_selection_on_validation_classes_leaves_them_out_of_training(images: Path, tmp_path: Path) -> None:
    result = train(images, tmp_path / "member", "selection.split=validation")
    assert result.selected_on == "validation"
    records = MemberFolder(tmp_path / "member").epochs()
    assert all(set(record.metrics) == {"test", "validation"} for record in records)
    recalls = [record.metrics["validation"]["recall_at_1"] for record in records]
    assert result.best_epoch == recalls.index(max(recalls)) + 1
    assert last_state(tmp_path / "member")["recipe.base.loss.means"].shape == (4, 8)
    assert len(EmbeddingTable.load(tmp_path / "member/embeddings.train.npz").ids) == PER_SPLIT


def test_a_nan_loss_is_a_failed_result_naming_epoch_and_step(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factors = iter([1.0] * (STEPS_PER_EPOCH + 2) + [float("nan")] * STEPS_PER_EPOCH)

    def breaking(objective: Hist, embeddings: Tensor, labels: Tensor) -> Tensor:
        return embeddings.sum() * next(factors)

    monkeypatch.setattr(Hist, "forward", breaking)
    spec = tiny_spec(tiny_config(images, tmp_path))
    result = member_result(spec, tmp_path / "member", Worker.alone())
    assert result.status == "failed"
    assert result.reason.startswith("epoch 2, step 3: the loss is nan.")
    assert MemberFolder(tmp_path / "member").result() == result
    assert [record.epoch for record in MemberFolder(tmp_path / "member").epochs()] == [1]


def test_a_fault_of_ours_is_raised_and_recorded_with_its_place(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(objective: Hist, embeddings: Tensor, labels: Tensor) -> Tensor:
        raise ZeroDivisionError("no\nhope")

    monkeypatch.setattr(Hist, "forward", broken)
    with pytest.raises(ZeroDivisionError):
        member_result(tiny_spec(tiny_config(images, tmp_path)), tmp_path / "member", Worker.alone())
    _, ended = MemberFolder(tmp_path / "member").attempts()
    assert (ended.event, ended.cause) == ("ended", "exception")
    assert ended.reason.startswith("ZeroDivisionError: no hope (test_member.py:")


def test_a_collapsed_member_ends_with_a_warning() -> None:
    ids, labels = np.array(["a", "b", "c", "d"]), np.array([0, 0, 1, 1])
    point = np.tile(np.array([[0.6, 0.8]], np.float32), (4, 1))
    assert mean_pairwise_cosine(EmbeddingTable(ids, labels, point)) == pytest.approx(1, abs=1e-6)
    assert "collapsed" in str(collapse_warning(EmbeddingTable(ids, labels, point)))
    spread = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], np.float32)
    assert mean_pairwise_cosine(EmbeddingTable(ids, labels, spread)) == pytest.approx(-1 / 3)
    assert collapse_warning(EmbeddingTable(ids, labels, spread)) is None


@pytest.mark.parametrize("recipe", ["plain", "distillation"])
def test_an_objective_that_found_nothing_to_teach_is_told(images: Path, tmp_path: Path, recipe: str) -> None:
    nothing = ("loss={name: contrastive}", "miner={name: pair_margin, positive_above: 2, negative_below: 1e-6}")
    result = train(images, tmp_path / "member", *nothing, f"recipe={{name: {recipe}}}")
    assert "the objective was exactly 0 in 2 epoch(s), first in 1: it taught nothing there" in result.warnings


def test_missing_data_is_a_failed_result(tmp_path: Path) -> None:
    spec = tiny_spec(tiny_config(tmp_path / "nowhere", tmp_path))
    result = member_result(spec, tmp_path / "member", Worker.alone())
    assert result.status == "failed"
    assert "nowhere: not a folder" in result.reason
