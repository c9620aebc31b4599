"""``sfora-ray fold``."""

from __future__ import annotations

import click

from sfora_ray.cli.summary_table import print_summary
from sfora_ray.cli.terminal import make_console
from sfora_ray.workflows.homes import written_run
from sfora_ray.workflows.refold import refold


@click.command()
@click.argument("run")
@click.option(
    "--fold",
    "folds",
    multiple=True,
    metavar="NAME[:DIM]",
    help="A fold, such as gpa, uncentred:256 or gpa+wccn:128; may be given again. Default: those of the config.",
)
def command(run: str, folds: tuple[str, ...]) -> None:
    """Refit folds on the run folder RUN, score them, and renew its summary, report and MLflow runs."""
    console = make_console()
    with written_run(run) as folder:
        summary = refold(folder, folds, say=lambda text: console.print(text, style="dim", highlight=False))
    print_summary(console, summary, folder)
