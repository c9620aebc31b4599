"""The training of one member, from top to bottom."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import safetensors.torch

from sfora_ray.arrays import EmbeddingTable
from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.files import write_bytes
from sfora_ray.training.attempts import restarts
from sfora_ray.training.checkpoint import LoopState, load_best
from sfora_ray.training.evaluate import collapse_warning, embed_table, retrieval_metrics
from sfora_ray.training.member_folder import EpochRecord, MemberFolder
from sfora_ray.training.ongoing import OngoingMember, ongoing_member
from sfora_ray.training.parts import Parts
from sfora_ray.training.patience import patiently
from sfora_ray.training.saver import Saver
from sfora_ray.training.selection import Best
from sfora_ray.training.unreadable import unreadable_warnings
from sfora_ray.training.worker import Worker, device_name


def train_member(spec: MemberSpec, folder: MemberFolder, worker: Worker) -> MemberResult:
    """Train, select and embed one member; everything it makes lies in ``folder`` afterwards.

    It continues from the newest checkpoint in the folder. Every worker of a member calls this; the first one writes.

    Raises:
        SforaError: the data, the weights or the loss are at fault; the message says which.
        StoppedError: it was asked to stop; its state is saved.
    """
    config = spec.config
    with ongoing_member(spec, folder, worker) as (member, state):
        while state.epochs_done < config.training.epochs:
            state = member.next_epoch(state)
        if not worker.is_first:
            return _not_first(spec)
        if "test" not in spec.scored:
            return _unseen(member, state)
        member.announcer.state("embedding", config.training.epochs, member.parts.sampler.steps_per_epoch)
        return _finish(member.parts, folder, state, member.saver)


def _finish(parts: Parts, folder: MemberFolder, state: LoopState, saver: Saver) -> MemberResult:
    """Embed both splits with the selected student and write the member's files, the result last."""
    best = state.selected
    assert best is not None, "the last epoch is always evaluated"
    load_best(folder.checkpoint_path, parts, best.epoch)
    test = embed_table(parts, parts.data.dataset.test)
    train = embed_table(parts, parts.data.dataset.train, parts.data.on_unreadable)
    weights = {name: tensor.contiguous() for name, tensor in parts.embedder.state_dict().items()}
    files: dict[Path, Callable[[], None]] = {
        folder.embeddings_path("test"): lambda: test.save(folder.embeddings_path("test")),
        folder.embeddings_path("train"): lambda: train.save(folder.embeddings_path("train")),
        folder.model_path: lambda: write_bytes(folder.model_path, safetensors.torch.save(weights)),
    }
    for path, write in files.items():
        patiently(str(path), write)
    result = _result(parts, folder, state.train_seconds, best, test)
    return result.model_copy(update={"warnings": (*result.warnings, *saver.warnings(), *unreadable_warnings(folder))})


def _result(parts: Parts, folder: MemberFolder, train_seconds: float, best: Best, test: EmbeddingTable) -> MemberResult:
    config, epochs = parts.config, folder.epochs()
    num_images = parts.sampler.steps_per_epoch * config.sampler.batch_size * len(epochs)
    return MemberResult(
        id=parts.spec.id,
        seed=parts.spec.seed,
        status="finished",
        best_epoch=best.epoch,
        selected_on=config.selection.split,
        metrics=retrieval_metrics(test, config.evaluation, parts.worker.device),
        epochs=config.training.epochs,
        restarts=restarts(folder.attempts()),
        train_seconds=train_seconds,
        images_per_second=num_images / train_seconds,
        images_decoded=parts.data.images_decoded,
        device=device_name(parts.worker.device),
        warnings=_warnings(epochs, test),
        notes=(*parts.data.dataset.notes, *parts.sampler.notes),
        dataset_digest=parts.data.dataset.digest,
    )


def _warnings(epochs: list[EpochRecord], test: EmbeddingTable) -> tuple[str, ...]:
    collapsed = collapse_warning(test)
    return (*(() if collapsed is None else (collapsed,)), *_silent_epochs(epochs))


def _silent_epochs(epochs: list[EpochRecord]) -> tuple[str, ...]:
    silent = [record.epoch for record in epochs if record.loss.get("objective", record.loss["total"]) == 0.0]
    if not silent:
        return ()
    return (f"the objective was exactly 0 in {len(silent)} epoch(s), first in {silent[0]}: it taught nothing there",)


def _unseen(member: OngoingMember, state: LoopState) -> MemberResult:
    """Return the result of a member that never looks at the test classes: its held-out metrics, and no embeddings."""
    spec, best = member.parts.spec, state.selected
    assert best is not None, "the last epoch is always evaluated"
    epochs = member.folder.epochs()
    return MemberResult(
        id=spec.id,
        seed=spec.seed,
        status="finished",
        best_epoch=best.epoch,
        selected_on=spec.config.selection.split,
        epochs=spec.config.training.epochs,
        restarts=restarts(member.folder.attempts()),
        train_seconds=state.train_seconds,
        device=device_name(member.parts.worker.device),
        warnings=_silent_epochs(epochs),
    )


def _not_first(spec: MemberSpec) -> MemberResult:
    return MemberResult(id=spec.id, seed=spec.seed, status="finished")
