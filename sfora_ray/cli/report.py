"""``sfora-ray report``."""

from __future__ import annotations

import click

from sfora_ray.workflows.homes import written_run
from sfora_ray.workflows.refold import rebuild_report


@click.command()
@click.argument("run")
def command(run: str) -> None:
    """Rebuild report/index.html and report/report.md from the run folder RUN alone."""
    with written_run(run) as folder:
        paths = rebuild_report(folder)
    click.echo(paths.html)
    click.echo(paths.markdown)
