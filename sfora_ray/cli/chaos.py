"""``sfora-ray bench chaos``: the table of trials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from sfora_ray.benchmarks.chaos import TrialOutcome, chaos_trials
from sfora_ray.cli.terminal import make_console
from sfora_ray.errors import SforaError

_COLUMNS = ("trial", "fault", "at step", "exits", "redone", "bits equal", "tracker", "resources back", "seconds")
_LEFT = ("fault", "exits", "bits equal", "tracker", "resources back")


def run_chaos(trials: int, *, local: bool, seed: int, folder: Path | None) -> None:
    """Run the trials, print one line each, also if interrupted, and end with exit code 1 if any went wrong."""
    console = make_console()
    outcomes: list[TrialOutcome] = []
    try:
        for outcome in chaos_trials(trials, local=local, seed=seed, say=_say, folder=folder):
            outcomes.append(outcome)
            _say(f"  {'passed' if outcome.passed else 'FAILED'} in {outcome.seconds:.0f} s")
    finally:
        console.print(outcomes_table(outcomes))
        _say_what_is_wrong(console, outcomes)
    wrong = sum(not outcome.passed for outcome in outcomes)
    if wrong:
        raise SforaError(f"chaos: {wrong} of {trials} trials did not end as if nothing had happened.")


def _say(text: str) -> None:
    click.echo(text, err=True)


def outcomes_table(outcomes: Sequence[TrialOutcome]) -> Table:
    """Return one line a trial."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column in _LEFT else "right", no_wrap=True)
    for number, outcome in enumerate(outcomes, start=1):
        table.add_row(
            str(number),
            outcome.fault,
            str(outcome.moment),
            " ".join(str(code) for code in outcome.exit_codes),
            f"{outcome.redone} <= {outcome.allowed}" if outcome.redone <= outcome.allowed else str(outcome.redone),
            "NO" if outcome.differing else "yes",
            "NO" if outcome.tracker else "intact",
            "NO" if outcome.left else "yes",
            f"{outcome.seconds:.0f}",
            style=None if outcome.passed else "red",
        )
    return table


def _say_what_is_wrong(console: Console, outcomes: Sequence[TrialOutcome]) -> None:
    for number, outcome in enumerate(outcomes, start=1):
        for fault in (*outcome.differing, *outcome.tracker, *outcome.left):
            console.print(f"trial {number}: {fault}", highlight=False, markup=False)
