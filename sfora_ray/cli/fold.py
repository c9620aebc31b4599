"""``sfora-ray fold``."""

from __future__ import annotations

from pathlib import Path

import click

from sfora_ray.cli.summary_table import print_summary
from sfora_ray.cli.terminal import make_console
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.workflows.refold import refold


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--fold",
    "folds",
    multiple=True,
    metavar="NAME[:DIM]",
    help="A fold, such as gpa, uncentred:256 or gpa+wccn:128; may be given again. Default: those of the config.",
)
def command(run: Path, folds: tuple[str, ...]) -> None:
    """Refit folds on the run folder RUN, score them, and renew its summary, report and MLflow runs."""
    console = make_console()
    folder = RunFolder.open(run)
    summary = refold(folder, folds, say=lambda text: console.print(text, style="dim", highlight=False))
    print_summary(console, summary, folder)
