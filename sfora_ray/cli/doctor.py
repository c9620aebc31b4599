"""``sfora-ray doctor``."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sfora_ray.cli.terminal import make_console
from sfora_ray.config.load import load_config
from sfora_ray.workflows.checks.finding import Finding
from sfora_ray.workflows.doctor import Say, doctor

_WORDS = {"green": "ok", "yellow": "warning", "red": "RED"}
_WIDTH_OF_LEVEL, _WIDTH_OF_AREA = 8, 14


@click.command()
@click.argument("config", type=click.Path(path_type=Path), required=False)
@click.argument("overrides", nargs=-1, metavar="[PATH=VALUE]...")
def command(config: Path | None, overrides: tuple[str, ...]) -> None:
    """Look at all that a pack stands on: packages, GPUs, Ray, storage, MLflow and, with CONFIG, its data and weights.

    One line each, with what to do where one is not green. Ends with exit code 1 if a line is red.
    """
    pack = load_config(config, overrides) if config else None
    console = make_console()
    levels: Counter[str] = Counter()
    with _waiting(console) as say, closing(doctor(pack, say=say)) as findings:
        for finding in findings:
            levels[finding.level] += 1
            _print(console, finding)
    counts = ", ".join(f"{levels[level]} {level}" for level in _WORDS if levels[level])
    console.print(f"{levels.total()} lines: {counts}", style="bold", highlight=False)
    if levels["red"]:
        sys.exit(1)


@contextmanager
def _waiting(console: Console) -> Iterator[Say]:
    """Yield what shows on the terminal, if there is one, what is being waited for."""
    screen = console if console.is_terminal else Console(stderr=True)
    with screen.status("") as status:
        yield lambda text: status.update(Text(f"{text} ..."))


def _print(console: Console, finding: Finding) -> None:
    """Print a finding as one row; where there is no terminal it is one line, however long."""
    words = finding.found + (f" -> {finding.advice}" if finding.advice else "")
    if console.is_terminal:
        console.print(_row(finding, words), highlight=False)
        return
    line = f"{_WORDS[finding.level]:<{_WIDTH_OF_LEVEL}}{finding.area:<{_WIDTH_OF_AREA}}{words}"
    console.print(line, soft_wrap=True, highlight=False, markup=False)


def _row(finding: Finding, words: str) -> Table:
    row = Table.grid(padding=0, expand=True)
    row.add_column(width=_WIDTH_OF_LEVEL, style=f"bold {finding.level}")
    row.add_column(width=_WIDTH_OF_AREA)
    row.add_column(ratio=1)
    row.add_row(_WORDS[finding.level], finding.area, Text(words))
    return row
