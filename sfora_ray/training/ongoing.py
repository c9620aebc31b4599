"""A member under training, moved on epoch by epoch: alone to its end, or side by side with others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sfora_ray.config.member import MemberSpec
from sfora_ray.files import write_bytes
from sfora_ray.training.announcer import Announcer, now_ms
from sfora_ray.training.attempts import begin_attempt
from sfora_ray.training.checkpoint import LoopState, load_checkpoint, save_best
from sfora_ray.training.epoch import EpochOutcome, EpochSoFar, train_epoch
from sfora_ray.training.evaluate import embed_table, retrieval_metrics
from sfora_ray.training.member_folder import EpochRecord, MemberFolder
from sfora_ray.training.parts import Parts, build_parts
from sfora_ray.training.patience import patiently
from sfora_ray.training.preparation import member_data
from sfora_ray.training.saver import Saver
from sfora_ray.training.selection import Best, better, in_turn, is_due
from sfora_ray.training.worker import Worker, torch_settings


@dataclass(frozen=True)
class OngoingMember:
    """What a member is trained with. Its place in the loop is a :class:`LoopState` that goes in and comes out."""

    parts: Parts
    folder: MemberFolder
    announcer: Announcer
    saver: Saver

    def next_epoch(self, state: LoopState) -> LoopState:
        """Train the epoch after ``state``, evaluate if it is time, remember the best, record it and save the state.

        Raises:
            SforaError: the data or the loss are at fault; the message says which.
            StoppedError: it was asked to stop; its state is saved.
        """
        self.saver.leave_if_asked(state)
        parts, saver, config, epoch = self.parts, self.saver, self.parts.config, state.epochs_done + 1
        outcome = train_epoch(parts, epoch, self.announcer, start=state.under_way, between=saver.between(state))
        ended = replace(
            state, epochs_done=epoch, under_way=EpochSoFar(), train_seconds=state.train_seconds + outcome.seconds
        )
        if not parts.worker.is_first:
            return ended
        metrics: dict[str, dict[str, float]] = {}
        if is_due(config, epoch):
            self.announcer.state("evaluating", epoch, parts.sampler.steps_per_epoch)
            metrics = _evaluate(parts)
            saver.refuse_if_replaced()
            ended = self._remember(ended, better(config, state.best, epoch, metrics))
        record = _record(parts, epoch, outcome, metrics)
        saver.refuse_if_replaced()
        patiently(str(self.folder.epochs_path), lambda: self.folder.append_epoch(record))
        if epoch % config.training.checkpoint_every == 0 or epoch == config.training.epochs:
            saver.save(ended)
        return ended

    def _remember(self, state: LoopState, candidate: Best | None) -> LoopState:
        if candidate is None:
            return state
        path, config = self.folder.checkpoint_path, self.parts.config
        patiently(f"{path}", lambda: save_best(path, self.parts, candidate.epoch))
        return replace(state, best=candidate) if in_turn(config, candidate.epoch) else replace(state, last=candidate)


@contextmanager
def ongoing_member(spec: MemberSpec, folder: MemberFolder, worker: Worker) -> Iterator[tuple[OngoingMember, LoopState]]:
    """Prepare a member to go on from the newest checkpoint in its folder, or from its start.

    Raises:
        SforaError: the data or the weights are at fault; the message says which.
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
        saver = Saver(parts, folder, _take_over(parts, folder, state))
        yield OngoingMember(parts, folder, announcer, saver), state


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


def _evaluate(parts: Parts) -> dict[str, dict[str, float]]:
    """Score the splits that are to be scored, of those there are; NMI and coarse classes wait for the kept epoch."""
    there = {"test": parts.data.dataset.test, "validation": parts.data.validation}
    options = parts.config.evaluation.model_copy(update={"nmi": False})
    return {
        split: retrieval_metrics(embed_table(parts, table), options, parts.worker.device, coarse=False)
        for split in parts.spec.scored
        if (table := there[split]) is not None
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
