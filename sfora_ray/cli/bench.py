"""``sfora-ray bench``."""

from __future__ import annotations

import click
from rich.console import Console
from rich.table import Table

from sfora_ray.benchmarks import BENCHMARKS, BenchmarkResult
from sfora_ray.cli.terminal import make_console
from sfora_ray.errors import InputError, did_you_mean
from sfora_ray.pack.run_folder import package_versions


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--quick", is_flag=True, help="Small sizes: shows that it runs, proves nothing about speed.")
def command(names: tuple[str, ...], quick: bool) -> None:
    """Time the named benchmarks (all: step, hist, metrics, curve, gpa, pack) against their marks."""
    for name in names:
        if name not in BENCHMARKS:
            raise InputError(
                f"bench: no such benchmark, got '{name}'.{did_you_mean(name, BENCHMARKS)} "
                f"Choose from {', '.join(BENCHMARKS)}."
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
