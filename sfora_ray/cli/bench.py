"""``sfora-ray bench``."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from sfora_ray.benchmarks import BENCHMARKS, BenchmarkResult
from sfora_ray.cli.chaos import run_chaos
from sfora_ray.cli.terminal import make_console
from sfora_ray.errors import InputError, did_you_mean
from sfora_ray.pack.run_folder import package_versions


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--quick", is_flag=True, help="Small sizes: shows that it runs, proves nothing about speed.")
@click.option("--trials", type=click.IntRange(min=1), default=20, show_default=True, help="Of chaos.")
@click.option("--local", is_flag=True, help="Chaos without Ray, and without the faults that only a cluster knows.")
@click.option("--seed", type=int, default=0, show_default=True, help="Draws the faults and moments of chaos.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where the packs of chaos are kept.")
def command(names: tuple[str, ...], quick: bool, trials: int, local: bool, seed: int, folder: Path | None) -> None:
    """Time the named benchmarks against their marks, or strike packs at random moments (chaos, by itself).

    Benchmarks: step, hist, metrics, curve, gpa, pack, tracking.
    """
    if names == ("chaos",):
        run_chaos(trials, local=local, seed=seed, folder=folder)
        return
    for name in names:
        if name not in BENCHMARKS:
            raise InputError(
                f"bench: no such benchmark, got '{name}'.{did_you_mean(name, BENCHMARKS)} "
                f"Choose from {', '.join(BENCHMARKS)}, or chaos by itself."
            )
    console = make_console()
    results = []
    for name in names or BENCHMARKS:
        with Console(stderr=True).status(f"timing {name}"):
            results.append(BENCHMARKS[name](quick=quick))
    console.print(_table(results))
    versions = ", ".join(f"{package} {version}" for package, version in package_versions().items())
    console.print(versions, style="dim", highlight=False)


def _table(results: list[BenchmarkResult]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("benchmark", "ours s", "theirs s", "ratio", "mark", "", "peak MiB", "what"):
        table.add_column(column, justify="left" if column in ("benchmark", "what", "") else "right")
    for result in results:
        table.add_row(
            result.name,
            f"{result.ours_seconds:.3f}",
            f"{result.theirs_seconds:.3f}",
            f"{result.ratio:.2f}",
            result.mark,
            "met" if result.reached else "missed",
            f"{result.peak_mib:.0f}",
            result.note,
        )
    return table
