"""``sfora-ray ablation``."""

from __future__ import annotations

from pathlib import Path

import click

from sfora_ray.cli.comparison_table import print_comparison
from sfora_ray.cli.live_table import live_table
from sfora_ray.cli.pack import say_to
from sfora_ray.cli.terminal import make_console
from sfora_ray.config.load import load_config
from sfora_ray.workflows.ablation import ablate
from sfora_ray.workflows.launchers import Launcher


@click.command()
@click.argument("first", metavar="CONFIG_A", type=click.Path(path_type=Path))
@click.argument("second", metavar="CONFIG_B", type=click.Path(path_type=Path))
@click.argument("overrides", nargs=-1, metavar="[PATH=VALUE]...")
@click.option("--local", is_flag=True, help="Use processes of this machine, not Ray. The bits are the same.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the report. Default: compare/DIGEST beside the first pack.",
)
def command(first: Path, second: Path, overrides: tuple[str, ...], local: bool, output: Path | None) -> None:
    """Train the packs of CONFIG_A and CONFIG_B with the same seeds and compare them at each pack size.

    What is finished is not trained again, what has begun is continued. PATH=VALUE sets a value of both.
    """
    baseline, other = load_config(first, overrides), load_config(second, overrides)
    console = make_console()
    with live_table(console) as watch:
        outcome = ablate(baseline, other, Launcher(local=local), output=output, watch=watch, say=say_to(console))
    print_comparison(console, outcome.comparison, outcome.paths.html)
