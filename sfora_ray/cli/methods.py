"""``sfora-ray methods``."""

from __future__ import annotations

import click
from rich.console import Console
from rich.table import Table

from sfora_ray.config.methods import methods, methods_as_markdown


@click.command()
@click.option("--markdown", is_flag=True, help="As Markdown, as the README has it.")
def command(markdown: bool) -> None:
    """List every method that a configuration can name: its paper, its file, what its numbers were checked against."""
    if markdown:
        click.echo(methods_as_markdown())
        return
    table = Table(show_lines=True)
    for title in ("key", "name", "method and paper", "checked against", "differs from the authors' program"):
        table.add_column(title, overflow="fold")
    for one in methods():
        card = one.card
        table.add_row(one.key, one.name, f"{card.title}\n{card.paper}\n{one.file}", card.checked, card.differences)
    Console().print(table)
