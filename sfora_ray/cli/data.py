"""``sfora-ray data``."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from sfora_ray.config.load import load_config
from sfora_ray.data.base import ImageTable
from sfora_ray.data.check import check_images
from sfora_ray.data.listed import AbsentImagesError
from sfora_ray.errors import DataError


@click.group()
def command() -> None:
    """Look at a data set before a night is lost."""


@command.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("overrides", nargs=-1, metavar="[PATH=VALUE]...")
def check(config: Path, overrides: tuple[str, ...]) -> None:
    """Decode every image of CONFIG's data set and list all that are missing or cannot be read."""
    pack = load_config(config, overrides)
    console = Console(stderr=True)
    try:
        dataset = pack.data.load(pack.cache_dir.expanduser())
    except AbsentImagesError as error:
        for path in error.absent:
            click.echo(f"{path}: absent", err=True)
        raise
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("decoding")
        problems = check_images(dataset, lambda done, total: progress.update(task, completed=done, total=total))
    for split, table in (("train", dataset.train), ("test", dataset.test)):
        click.echo(f"{split}: {len(table.class_names)} classes{_coarse(table)}, {len(table)} images")
    for note in dataset.notes:
        click.echo(f"note: {note}")
    for problem in problems:
        click.echo(f"{problem.id}: {problem.reason}", err=True)
    if problems:
        raise DataError(f"data {dataset.name}: {len(problems)} image(s) cannot be read. Repair or remove them.")
    click.echo("every image can be read")


def _coarse(table: ImageTable) -> str:
    if table.coarse_labels is None:
        return ""
    return f" in {len(set(table.coarse_labels.tolist()))} coarse classes"
