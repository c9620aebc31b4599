"""``sfora-ray compare``."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console

from sfora_ray.cli.comparison_table import print_comparison
from sfora_ray.cli.pack import say_to
from sfora_ray.cli.terminal import make_console
from sfora_ray.workflows.compare import compare_runs


@click.command()
@click.argument("runs", nargs=-1, metavar="RUN RUN...")
@click.option("--tracking", metavar="URI", help="Where MLflow run ids are looked up. Default: sqlite:///mlflow.db.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the report. Default: compare/DIGEST beside the first run.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def command(runs: tuple[str, ...], tracking: str | None, output: Path | None, as_json: bool) -> None:
    """Compare packs: the first RUN is the baseline, each other is compared with it.

    A RUN is a run folder, an address in an object store, an MLflow run id, or the config of a pack that was run.
    """
    console = Console(stderr=True) if as_json else make_console()
    outcome = compare_runs(runs, output=output, tracking=tracking, say=say_to(console))
    if as_json:
        click.echo(json.dumps(outcome.comparison.model_dump(mode="json"), indent=2, ensure_ascii=False))
        return
    print_comparison(console, outcome.comparison, outcome.paths.html)
