"""The one live table that a person sees while members train."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table

from sfora_ray.pack.status import MemberView, duration
from sfora_ray.workflows.train_pack import Watch

_SECONDS_BETWEEN_LINES = 30.0


@contextmanager
def live_table(console: Console) -> Iterator[Watch]:
    """Yield what shows the members: a table that redraws on a terminal, a line now and then elsewhere."""
    if not console.is_terminal:
        yield _Lines(console)
        return
    with Live(console=console, refresh_per_second=4, transient=False) as live:
        yield lambda views: live.update(members_table(views))


def members_table(views: Sequence[MemberView]) -> Table:
    """Return the table of members, one line each."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("member", "state", "epoch", "loss", "Recall@1", "images/s", "time left", ""):
        table.add_column(column, justify="left" if column in ("member", "state", "") else "right", no_wrap=bool(column))
    for view in views:
        table.add_row(
            *_cells(view), style={"failed": "red", "finished": "green", "interrupted": "yellow"}.get(view.state)
        )
    return table


def _cells(view: MemberView) -> list[str]:
    return [
        f"{view.id} seed {view.seed}",
        view.state,
        f"{view.epoch}/{view.epochs}" if view.epoch else "-",
        "-" if view.loss is None else f"{view.loss:.4f}",
        "-" if view.recall_at_1 is None else f"{view.recall_at_1:.4f}",
        f"{view.images_per_second:.0f}" if view.images_per_second else "-",
        "-" if view.seconds_left is None else duration(view.seconds_left),
        view.note,
    ]


class _Lines:
    """Where there is no terminal: a line when a member changes its state, and all of them now and then."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._states: dict[str, str] = {}
        self._next = time.monotonic()

    def __call__(self, views: Sequence[MemberView]) -> None:
        """Print what is new."""
        due = time.monotonic() >= self._next
        for view in views:
            coarse = "training" if view.state in ("training", "evaluating") else view.state
            if due or self._states.get(view.id) != coarse:
                self._console.print(_line(view), soft_wrap=True, highlight=False, markup=False)
            self._states[view.id] = coarse
        if due:
            self._next = time.monotonic() + _SECONDS_BETWEEN_LINES


def _line(view: MemberView) -> str:
    names = ("", "", "epoch ", "loss ", "Recall@1 ", "images/s ", "left ", "")
    return "  ".join(f"{name}{cell}" for name, cell in zip(names, _cells(view), strict=True) if cell not in ("-", ""))
