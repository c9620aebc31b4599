"""The training of one member, from top to bottom."""

from __future__ import annotations

import safetensors.torch

from sfora_ray.arrays import EmbeddingTable
from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.files import write_bytes
from sfora_ray.training.announcer import Announcer, now_ms
from sfora_ray.training.checkpoint import LoopState, load_best, load_checkpoint, save_best, save_checkpoint
from sfora_ray.training.epoch import EpochOutcome, train_epoch
from sfora_ray.training.evaluate import collapse_warning, embed_table, retrieval_metrics
from sfora_ray.training.member_folder import EpochRecord, MemberFolder
from sfora_ray.training.parts import Parts, build_parts
from sfora_ray.training.preparation import prepare_data
from sfora_ray.training.selection import better, is_due
from sfora_ray.training.worker import Worker, device_name, torch_settings


def train_member(spec: MemberSpec, folder: MemberFolder, worker: Worker) -> MemberResult:
    """Train, select and embed one member; everything it makes lies in ``folder`` afterwards.

    It continues from the newest checkpoint in the folder. Every worker of a member calls this; the first one writes.

    Raises:
        SforaError: the data, the weights or the loss are at fault; the message says which.
    """
    config = spec.config
    announcer = Announcer(folder, config.training.epochs, silent=not worker.is_first)
    with torch_settings(config):
        announcer.state("preparing")
        data = prepare_data(config, announcer.preparing)
        parts = build_parts(spec, data, worker)
        state = load_checkpoint(folder.checkpoint_path, parts)
        _keep_epochs(folder, worker, state.epoch)
        for epoch in range(state.epoch + 1, config.training.epochs + 1):
            outcome = train_epoch(parts, epoch, announcer)
            state = _end_epoch(parts, folder, announcer, state, epoch, outcome)
        announcer.state("embedding", config.training.epochs)
        return _finish(parts, folder, state) if worker.is_first else _not_first(spec)


def _keep_epochs(folder: MemberFolder, worker: Worker, epoch: int) -> None:
    """Forget recorded epochs that the checkpoint does not hold: they are trained again."""
    if not worker.is_first:
        return
    kept = [record for record in folder.epochs() if record.epoch <= epoch]
    lines = "".join(record.model_dump_json() + "\n" for record in kept)
    write_bytes(folder.epochs_path, lines.encode())


def _end_epoch(
    parts: Parts,
    folder: MemberFolder,
    announcer: Announcer,
    state: LoopState,
    epoch: int,
    outcome: EpochOutcome,
) -> LoopState:
    """Evaluate if it is time, remember the best, record the epoch, save a checkpoint if it is time."""
    if not parts.worker.is_first:
        return state
    config, metrics, best = parts.config, {}, state.best
    if is_due(config, epoch):
        announcer.state("evaluating", epoch)
        metrics = _evaluate(parts)
        candidate = better(config, state.best, epoch, metrics)
        if candidate is not None:
            best = candidate
            save_best(folder.checkpoint_path, parts, epoch)
    state = LoopState(epoch, best, state.train_seconds + outcome.seconds)
    folder.append_epoch(_record(parts, epoch, outcome, metrics))
    if epoch % config.training.checkpoint_every == 0 or epoch == config.training.epochs:
        save_checkpoint(folder.checkpoint_path, parts, state)
    return state


def _evaluate(parts: Parts) -> dict[str, dict[str, float]]:
    """Score the test classes, and the held-out ones where there are any; NMI waits for the selected epoch."""
    tables = {"test": parts.data.dataset.test}
    if parts.data.validation is not None:
        tables["validation"] = parts.data.validation
    options = parts.config.evaluation.model_copy(update={"nmi": False})
    return {
        split: retrieval_metrics(embed_table(parts, table), options, parts.worker.device)
        for split, table in tables.items()
    }


def _record(parts: Parts, epoch: int, outcome: EpochOutcome, metrics: dict[str, dict[str, float]]) -> EpochRecord:
    return EpochRecord(
        epoch=epoch,
        step=epoch * parts.sampler.steps_per_epoch,
        time_ms=now_ms(),
        seconds=outcome.seconds,
        images_per_second=outcome.images_per_second,
        loss=outcome.loss,
        lr=outcome.lr,
        state=parts.recipe.objective.diagnostics(),
        metrics=metrics,
    )


def _finish(parts: Parts, folder: MemberFolder, state: LoopState) -> MemberResult:
    """Embed both splits with the selected student and write the member's files, the result last."""
    assert state.best is not None, "the last epoch is always evaluated"
    load_best(folder.checkpoint_path, parts, state.best.epoch)
    test = embed_table(parts, parts.data.dataset.test)
    train = embed_table(parts, parts.data.dataset.train)
    test.save(folder.embeddings_path("test"))
    train.save(folder.embeddings_path("train"))
    weights = {name: tensor.contiguous() for name, tensor in parts.embedder.state_dict().items()}
    write_bytes(folder.model_path, safetensors.torch.save(weights))
    return _result(parts, folder, state, test)


def _result(parts: Parts, folder: MemberFolder, state: LoopState, test: EmbeddingTable) -> MemberResult:
    assert state.best is not None
    config, epochs = parts.config, folder.epochs()
    num_images = parts.sampler.steps_per_epoch * config.sampler.batch_size * len(epochs)
    return MemberResult(
        id=parts.spec.id,
        seed=parts.spec.seed,
        status="finished",
        best_epoch=state.best.epoch,
        selected_on=config.selection.split,
        metrics=retrieval_metrics(test, config.evaluation, parts.worker.device),
        train_seconds=state.train_seconds,
        images_per_second=num_images / state.train_seconds,
        images_decoded=parts.data.images_decoded,
        device=device_name(parts.worker.device),
        warnings=_warnings(epochs, test),
        notes=(*parts.data.dataset.notes, *parts.sampler.notes),
        dataset_digest=parts.data.dataset.digest,
    )


def _warnings(epochs: list[EpochRecord], test: EmbeddingTable) -> tuple[str, ...]:
    silent = [record.epoch for record in epochs if record.loss["total"] == 0.0]
    found = [collapse_warning(test)]
    if silent:
        found.append(
            f"the loss was exactly 0 in {len(silent)} epoch(s), first in {silent[0]}: nothing was learnt there"
        )
    return tuple(text for text in found if text is not None)


def _not_first(spec: MemberSpec) -> MemberResult:
    return MemberResult(id=spec.id, seed=spec.seed, status="finished")
