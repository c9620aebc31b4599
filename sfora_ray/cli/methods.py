"""``sfora-ray methods``."""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.table import Table

from sfora_ray.config.methods import Method, methods, methods_as_markdown

_FILE_WIDTH = 160
"""Wide enough where the output is a file or a pipe; a terminal has its own."""


@click.command()
@click.argument("table", required=False)
@click.option("--markdown", is_flag=True, help="As Markdown, as the README has it.")
def command(table: str | None, markdown: bool) -> None:
    """List every method that a configuration can name: its paper, its file, what its numbers were checked against.

    TABLE narrows it to one key of a configuration: loss, miner, recipe, sampler, data or folds.
    """
    if markdown:
        click.echo(methods_as_markdown(table))
        return
    console = Console() if sys.stdout.isatty() else Console(width=_FILE_WIDTH)
    console.print(_shown(methods(table)))


def _shown(listed: tuple[Method, ...]) -> Table:
    shown = Table(show_lines=True)
    for title in ("key", "name"):
        # To be copied and searched for, so in one piece.
        shown.add_column(title, no_wrap=True)
    for title in ("method and paper", "checked against", "differs from the authors' program"):
        shown.add_column(title, overflow="fold")
    for one in listed:
        card = one.card
        shown.add_row(one.key, one.name, f"{card.title}\n{card.paper}\n{one.file}", card.checked, card.differences)
    return shown
