"""``sfora-ray report``."""

from __future__ import annotations

from pathlib import Path

import click

from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.workflows.finish import write_pack_report


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
def command(run: Path) -> None:
    """Rebuild report/index.html and report/report.md from the run folder RUN alone."""
    paths = write_pack_report(RunFolder.open(run))
    click.echo(paths.html)
    click.echo(paths.markdown)
