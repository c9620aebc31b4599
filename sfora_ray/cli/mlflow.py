"""``sfora-ray mlflow``."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from sfora_ray.cli.terminal import make_console
from sfora_ray.errors import BusyError
from sfora_ray.pack.abandoned import Closed
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.tracking import MlflowOptions
from sfora_ray.workflows.homes import read_run
from sfora_ray.workflows.reconcile import reconcile_run, reconcile_server, reconcile_sweep
from sfora_ray.workflows.sync import sync_run, sync_sweep


@click.group()
def command() -> None:
    """Tell MLflow again what a run folder says, and close what dead packs left running."""


@command.command()
@click.argument("run")
@click.option("--uri", help="Another tracking URI than the config's.")
def sync(run: str, uri: str | None) -> None:
    """Tell MLflow everything that the run or sweep folder RUN says; what is there already is not told twice.

    One that is under way may be synced too: its runs stay open.
    """
    sweep = _sweep_at(run)
    ended = sync_run(read_run(run, whole=True), uri=uri) if sweep is None else sync_sweep(sweep, uri=uri)
    click.echo("told" if ended else "told so far; it is under way and its runs stay open")


@command.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--uri", help="Tracking URI; the config's of each RUN, else sqlite:///mlflow.db.")
@click.option("--experiment", help="Experiment; the config's of each RUN, else sfora.")
@click.option("--silent-minutes", default=10.0, show_default=True, help="Without RUN: how long without a heartbeat.")
def reconcile(runs: tuple[str, ...], uri: str | None, experiment: str | None, silent_minutes: float) -> None:
    """Close the MLflow runs of packs and sweeps whose driver is dead.

    With run folders: theirs, at once, each with its member's true state. Without: all in the experiment whose driver
    has shown no heartbeat for some minutes.
    """
    if runs:
        closed = [one for place in runs for one in _reconciled(place, uri, experiment)]
    else:
        given = {"uri": uri, "experiment": experiment}
        tracking = MlflowOptions.given({name: value for name, value in given.items() if value})
        closed = reconcile_server(tracking, silent_minutes)
    _print(closed)


def _reconciled(place: str, uri: str | None, experiment: str | None) -> list[Closed]:
    sweep = _sweep_at(place)
    try:
        if sweep is not None:
            return reconcile_sweep(sweep, uri=uri, experiment=experiment)
        return reconcile_run(read_run(place), uri=uri, experiment=experiment)
    except BusyError as error:
        click.echo(str(error), err=True)
        return []


def _sweep_at(place: str) -> SweepFolder | None:
    """Return the sweep whose folder this is, or None if it is something else."""
    folder = SweepFolder(Path(place))
    return SweepFolder.open(folder.path) if folder.manifest_path.is_file() else None


def _print(closed: list[Closed]) -> None:
    if not closed:
        click.echo("nothing was left running")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("run", "closed as", "because"):
        table.add_column(column)
    for one in closed:
        table.add_row(one.name, one.status, one.reason)
    make_console().print(table)
