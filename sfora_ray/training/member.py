"""The training of one member, from top to bottom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import safetensors.torch

from sfora_ray.arrays import EmbeddingTable
from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.files import write_bytes
from sfora_ray.training.announcer import Announcer, now_ms
from sfora_ray.training.attempts import begin_attempt, restarts
from sfora_ray.training.checkpoint import LoopState, load_best, load_checkpoint, save_best
from sfora_ray.training.epoch import EpochOutcome, EpochSoFar, train_epoch
from sfora_ray.training.evaluate import collapse_warning, embed_table, retrieval_metrics
from sfora_ray.training.member_folder import EpochRecord, MemberFolder
from sfora_ray.training.parts import Parts, build_parts
from sfora_ray.training.patience import patiently
from sfora_ray.training.preparation import member_data
from sfora_ray.training.saver import Saver
from sfora_ray.training.selection import Best, better, in_turn, is_due
from sfora_ray.training.unreadable import unreadable_warnings
from sfora_ray.training.worker import Worker, device_name, torch_settings


def train_member(spec: MemberSpec, folder: MemberFolder, worker: Worker) -> MemberResult:
    """Train, select and embed one member; everything it makes lies in ``folder`` afterwards.

    It continues from the newest checkpoint in the folder. Every worker of a member calls this; the first one writes.

    Raises:
        SforaError: the data, the weights or the loss are at fault; the message says which.
        StoppedError: it was asked to stop; its state is saved.
    """
    config = spec.config
    announcer = Announcer(
        folder,
        config.training.epochs,
        every_seconds=config.training.progress_seconds,
        silent=not worker.is_first,
    )
    with torch_settings(config):
        announcer.state("preparing")
        data = member_data(spec, folder, announcer.preparing)
        parts = build_parts(spec, data, worker)
        state = load_checkpoint(folder.checkpoint_path, parts)
        holder = _take_over(parts, folder, state)
        saver = Saver(parts, folder, holder)
        while state.epochs_done < config.training.epochs:
            saver.leave_if_asked(state)
            state = _next_epoch(parts, folder, announcer, saver, state)
        announcer.state("embedding", config.training.epochs, parts.sampler.steps_per_epoch)
        return _finish(parts, folder, state, saver) if worker.is_first else _not_first(spec)


def _take_over(parts: Parts, folder: MemberFolder, state: LoopState) -> str:
    """Begin an attempt, and forget recorded epochs that the checkpoint does not hold: they are trained again."""
    if not parts.worker.is_first:
        return ""
    holder = patiently(str(folder.attempts_path), lambda: begin_attempt(folder, state.steps_done(parts)))
    folder.home.publish()
    kept = [record for record in patiently(str(folder.epochs_path), folder.epochs) if record.epoch <= state.epochs_done]
    lines = "".join(record.model_dump_json() + "\n" for record in kept)
    patiently(str(folder.epochs_path), lambda: write_bytes(folder.epochs_path, lines.encode()))
    return holder


def _next_epoch(parts: Parts, folder: MemberFolder, announcer: Announcer, saver: Saver, state: LoopState) -> LoopState:
    """Train an epoch to its end, evaluate if it is time, remember the best, record the epoch and save the state."""
    config, epoch = parts.config, state.epochs_done + 1
    outcome = train_epoch(parts, epoch, announcer, start=state.under_way, between=saver.between(state))
    ended = replace(
        state, epochs_done=epoch, under_way=EpochSoFar(), train_seconds=state.train_seconds + outcome.seconds
    )
    if not parts.worker.is_first:
        return ended
    metrics: dict[str, dict[str, float]] = {}
    if is_due(config, epoch):
        announcer.state("evaluating", epoch, parts.sampler.steps_per_epoch)
        metrics = _evaluate(parts)
        saver.refuse_if_replaced()
        ended = _remember(parts, folder, ended, better(config, state.best, epoch, metrics))
    record = _record(parts, epoch, outcome, metrics)
    saver.refuse_if_replaced()
    patiently(str(folder.epochs_path), lambda: folder.append_epoch(record))
    if epoch % config.training.checkpoint_every == 0 or epoch == config.training.epochs:
        saver.save(ended)
    return ended


def _remember(parts: Parts, folder: MemberFolder, state: LoopState, candidate: Best | None) -> LoopState:
    if candidate is None:
        return state
    path = folder.checkpoint_path
    patiently(f"{path}", lambda: save_best(path, parts, candidate.epoch))
    return replace(state, best=candidate) if in_turn(parts.config, candidate.epoch) else replace(state, last=candidate)


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
    silent = [record.epoch for record in epochs if record.loss["total"] == 0.0]
    found = [collapse_warning(test)]
    if silent:
        found.append(
            f"the loss was exactly 0 in {len(silent)} epoch(s), first in {silent[0]}: nothing was learnt there"
        )
    return tuple(text for text in found if text is not None)


def _not_first(spec: MemberSpec) -> MemberResult:
    return MemberResult(id=spec.id, seed=spec.seed, status="finished")
