"""``sfora-ray mlflow``."""

from __future__ import annotations

from pathlib import Path

import click

from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.workflows.sync import sync_run


@click.group()
def command() -> None:
    """Tell MLflow again what a run folder says."""


@command.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--uri", help="Another tracking URI than the config's.")
def sync(run: Path, uri: str | None) -> None:
    """Tell MLflow everything that the run folder RUN says; what is there already is not told twice."""
    sync_run(RunFolder.open(run), uri=uri)
    click.echo("told")
