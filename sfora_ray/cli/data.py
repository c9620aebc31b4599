"""``sfora-ray data``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from sfora_ray.config.load import load_config
from sfora_ray.data.base import ImageTable
from sfora_ray.data.check import check_images
from sfora_ray.data.listed import AbsentImagesError
from sfora_ray.errors import DataError

_SHOWN = 20
"""Enough to see what is wrong with them; one cause often spoils all of a data set."""


@click.group()
def command() -> None:
    """Look at a data set before a night is lost."""


@command.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("overrides", nargs=-1, metavar="[PATH=VALUE]...")
@click.option("--all", "in_full", is_flag=True, help=f"List all such images, not the first {_SHOWN}.")
def check(config: Path, overrides: tuple[str, ...], in_full: bool) -> None:
    """Decode every image of CONFIG's data set and list those that are missing or cannot be read."""
    pack = load_config(config, overrides)
    console = Console(stderr=True)
    try:
        dataset = pack.data.load(pack.cache_dir.expanduser())
    except AbsentImagesError as error:
        _list([f"{path}: absent" for path in error.absent], in_full=in_full)
        raise
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("decoding")
        problems = check_images(dataset, lambda done, total: progress.update(task, completed=done, total=total))
    for split, table in (("train", dataset.train), ("test", dataset.test)):
        click.echo(f"{split}: {len(table.class_names)} classes{_coarse(table)}, {len(table)} images")
    for note in dataset.notes:
        click.echo(f"note: {note}")
    _list([f"{problem.id}: {problem.reason}" for problem in problems], in_full=in_full)
    if problems:
        raise DataError(f"data {dataset.name}: {len(problems)} image(s) cannot be read. Repair or remove them.")
    click.echo("every image can be read")


def _list(lines: Sequence[str], *, in_full: bool) -> None:
    shown = lines if in_full else lines[:_SHOWN]
    for line in shown:
        click.echo(line, err=True)
    if len(shown) < len(lines):
        click.echo(f"and {len(lines) - len(shown)} more, {len(lines)} in all; --all lists them", err=True)


def _coarse(table: ImageTable) -> str:
    if table.coarse_labels is None:
        return ""
    return f" in {len(set(table.coarse_labels.tolist()))} coarse classes"
