"""What a pack came to, on the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summary import FoldFacts, MemberFacts, Summary, restarted

_NARROW = {"recall_at_1": "R@1", "map_at_r": "MAP@R"}
_WIDE = {
    "recall_at_1": "R@1",
    "recall_at_2": "R@2",
    "recall_at_4": "R@4",
    "recall_at_8": "R@8",
    "map_at_r": "MAP@R",
}
_WIDE_FROM = 110
_SELECTED = {
    "validation": "epochs selected on held-out training classes",
    "test": "epochs selected on the test classes (optimistic)",
    "last": "last epoch kept, nothing selected",
}


def print_summary(console: Console, summary: Summary, run: RunFolder) -> None:
    """Print members, single, pack sizes and folds, what they were selected and fitted on, and where to read more."""
    pack = summary.pack
    missing = pack.num_planned - pack.num_members
    console.print(
        f"\n[bold]{pack.name}[/bold] {pack.dataset}, {pack.method}: {pack.num_members} members"
        + (f" of {pack.num_planned} ([red]{missing} missing[/red])" if missing else "")
        + f"; {_SELECTED[pack.selection]}; {pack.num_queries} queries",
        highlight=False,
    )
    console.print(_table(summary, _WIDE if console.width >= _WIDE_FROM else _NARROW))
    for member in summary.members:
        _print_troubles(console, member)
    console.print(
        "ci95: single, t interval of the mean over members; pack and folds, bootstrap over test classes of this one "
        "pack. fitted on test (bound): an upper bound, not a result.",
        style="dim",
        highlight=False,
    )
    report = run.report_path / "index.html"
    if report.is_file():
        console.print(f"report  {report}", soft_wrap=True, highlight=False)


def _print_troubles(console: Console, member: MemberFacts) -> None:
    """Say why a member is missing, or that it began again."""
    again = f"{restarted(member.restarts)}: {'; '.join(member.restarts)}" if member.restarts else ""
    what = again if member.status == "finished" else ": ".join(filter(None, (member.status, member.why)))
    if what:
        style = "yellow" if member.status == "finished" else "red"
        text = f"{member.id} seed {member.seed} {what}"
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def _table(summary: Summary, shown: Mapping[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("", "dim", "fitted on", *shown.values(), "R@1 ci95", "retained"):
        table.add_column(column, justify="left" if column in ("", "fitted on") else "right", no_wrap=True)
    for member in summary.members:
        scores = [_number(member.metrics.get(key)) for key in shown]
        note = "" if member.status == "finished" else member.status
        table.add_row(f"{member.id} seed {member.seed}", str(summary.pack.dim), note, *scores, "", "", style="dim")
    single = [_number(summary.single[key].mean) for key in shown]
    spread = summary.single["recall_at_1"]
    table.add_row(f"single, mean of {spread.n}", str(summary.pack.dim), "", *single, _interval(spread.ci95), "")
    for fold in summary.folds:
        table.add_row(*_fold_cells(fold, shown))
    return table


def _fold_cells(fold: FoldFacts, shown: Mapping[str, str]) -> list[str]:
    fitted = "test (bound)" if fold.fitted_on == "test" else fold.fitted_on
    scores = [_number(fold.metrics.get(key)) for key in shown]
    return [fold.name, str(fold.dim), fitted, *scores, _interval(fold.ci95), f"{100 * fold.retained:.1f} %"]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _interval(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f"\\[{ends[0]:.4f}, {ends[1]:.4f}]"
