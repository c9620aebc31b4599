"""``sfora-ray report``."""

from __future__ import annotations

import click

from sfora_ray.workflows.finish import write_pack_report
from sfora_ray.workflows.homes import written_run


@click.command()
@click.argument("run")
def command(run: str) -> None:
    """Rebuild report/index.html and report/report.md from the run folder RUN alone."""
    with written_run(run) as folder:
        folder.home.fetch_results()
        paths = write_pack_report(folder)
    click.echo(paths.html)
    click.echo(paths.markdown)
