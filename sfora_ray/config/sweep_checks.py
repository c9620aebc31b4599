"""What the parts of a sweep must be to each other, beyond what each is by itself; nothing is written here."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sfora_ray.config.schedulers import AshaOptions, HyperbandOptions, PbtOptions
from sfora_ray.config.space_checks import problems_of_space
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.errors import ConfigError
from sfora_ray.search import Continuous, root_of
from sfora_ray.storage import is_address, without_credentials

CHANGEABLE = (
    "optimizer.lr",
    "optimizer.head_lr",
    "optimizer.weight_decay",
    "optimizer.clip_value",
    "optimizer.clip_norm",
    "recipe.weight",
    "recipe.tau",
    "recipe.momentum",
    "loss.tau",
    "loss.alpha",
    "loss.lambda_s",
    "loss.lr_distributions",
    "loss.hgnn_lr_factor",
    "loss.delta",
    "loss.proxy_lr",
)
"""Paths whose values may change in the middle of a training: they change no shape and no data."""


def problems_of(sweep: SweepConfig, unseen: Collection[str] = (), unknown: Collection[str] = ()) -> list[str]:
    """Return one line per problem.

    Args:
        sweep: what is checked.
        unseen: entries of the space that were left out, since they are faulty themselves.
        unknown: keys of the sweep that were left out and have their defaults here.
    """
    lines = [*problems_of_space(sweep, unseen), *_output(sweep), *_selection(sweep), *_scheduler(sweep)]
    if not {"searcher", "trials"} & {*unknown}:
        lines += _trials(sweep) if unseen else [*_trials(sweep), *_searcher(sweep)]
    return list(dict.fromkeys(lines))


def _output(sweep: SweepConfig) -> Iterator[str]:
    output = sweep.pack.output
    if is_address(output):
        yield (
            "pack.output: a sweep needs a folder, which every node can see, and not an object store, got "
            f"'{without_credentials(output)}'. Set pack.output to a shared folder"
        )


def _selection(sweep: SweepConfig) -> Iterator[str]:
    folds = sweep.selection.folds
    if sweep.is_on_test and folds > 1:
        yield f"selection.folds: must be 1 with selection.split test, for only training classes are dealt, got {folds}"


def _trials(sweep: SweepConfig) -> Iterator[str]:
    if sweep.trials is None and sweep.searcher.name != "grid":
        yield f"trials: must be given, for searcher '{sweep.searcher.name}' comes to no end"


def _searcher(sweep: SweepConfig) -> Iterator[str]:
    try:
        sweep.searcher.build(sweep.search_space)
        size = sweep.searcher.size(sweep.search_space)
    except ConfigError as error:
        yield str(error)
        return
    if sweep.searcher.name == "grid" and sweep.trials is not None and size is not None and sweep.trials > size:
        yield f"trials: must not be above the {size} configurations of the grid, got {sweep.trials}. Leave it out"


def _scheduler(sweep: SweepConfig) -> Iterator[str]:
    scheduler = sweep.scheduler
    if isinstance(scheduler, PbtOptions):
        yield from _epochs(sweep, "scheduler.interval_epochs", scheduler.interval_epochs)
        yield from _population(sweep)
    if isinstance(scheduler, AshaOptions | HyperbandOptions):
        yield from _epochs(sweep, "scheduler.grace_epochs", scheduler.grace_epochs)
        if root_of("training.epochs", sweep.space) is not None:
            yield (
                f"space.{root_of('training.epochs', sweep.space)}: cannot be searched with scheduler "
                f"'{scheduler.name}', which compares trials of one length. Set scheduler.name to none"
            )
    if isinstance(scheduler, HyperbandOptions):
        yield from _brackets(sweep, scheduler)


def _epochs(sweep: SweepConfig, place: str, epochs: int) -> Iterator[str]:
    training = sweep.pack.training
    if epochs > training.epochs:
        yield f"{place}: must not be above the pack's training.epochs ({training.epochs}), got {epochs}"
    elif epochs % training.evaluate_every:
        yield (
            f"{place}: must be a multiple of the pack's training.evaluate_every ({training.evaluate_every}), for a "
            f"trial has no score in between, got {epochs}. Change either, the pack's with set"
        )


def _brackets(sweep: SweepConfig, scheduler: HyperbandOptions) -> Iterator[str]:
    epochs = sweep.pack.training.epochs
    last = scheduler.grace_epochs * scheduler.reduction ** (scheduler.brackets - 1)
    if scheduler.grace_epochs <= epochs < last:
        yield (
            f"scheduler.brackets: the first rung of the last bracket would be epoch {last}, above the pack's "
            f"training.epochs ({epochs}), got {scheduler.brackets}"
        )


def _population(sweep: SweepConfig) -> Iterator[str]:
    """Yield why population-based training cannot work: one training, of one member, with numbers that may change."""
    if sweep.searcher.name != "random":
        name = sweep.searcher.name
        yield f"searcher.name: must be random with scheduler 'pbt', which changes values itself, got '{name}'"
    for path, one in sweep.space.items():
        if path not in CHANGEABLE:
            yield (
                f"space.{path}: cannot change in the middle of a training, as scheduler 'pbt' does. "
                f"What can: {', '.join(CHANGEABLE)}"
            )
        elif not isinstance(one, Continuous) or one.when:
            yield f"space.{path}: must be continuous, with no conditions, for scheduler 'pbt', got {one.distribution}"
    if sweep.trials is not None and sweep.trials < PbtOptions.smallest_population:
        yield f"trials: must be {PbtOptions.smallest_population} or more with scheduler 'pbt', got {sweep.trials}"
    if len(sweep.member_names()) > 1:
        yield (
            "scheduler: 'pbt' copies one member, so seeds and selection.folds must be one each, got "
            f"{len(sweep.seeds)} and {sweep.selection.folds}"
        )
    if sweep.pack.resources.workers_per_member > 1:
        yield (
            "scheduler: 'pbt' needs members of one worker, got resources.workers_per_member "
            f"{sweep.pack.resources.workers_per_member}"
        )
