"""What a sweep shows on a terminal: trials as they go, the ranking, and the answer of a confirmation."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sfora_ray.pack.status import duration
from sfora_ray.sweep.best import judged_text, selected_on, value_text
from sfora_ray.sweep.confirmation import Confirmed, Verdict
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.sweep.ranking import RankedTrial, Ranking
from sfora_ray.sweep.status import SweepView, TrialView
from sfora_ray.workflows.sweep import Watch

_SECONDS_BETWEEN_LINES = 30.0
_MOST_ENDED = 8
"""So many of the trials that have ended are shown while others run, the newest."""
_MOST_RANKED = 20
_STYLES = {
    "failed": "red",
    "non_finite": "red",
    "finished": "green",
    "stopped": "dim",
    "interrupted": "yellow",
}
_ON_TEST = "selection: test. Chosen on the test classes: no number of these classes is a fair one now."


@contextmanager
def live_sweep(console: Console) -> Iterator[Watch]:
    """Yield what shows the trials: a table that redraws on a terminal, a line now and then elsewhere."""
    if not console.is_terminal:
        yield _Lines(console)
        return
    with Live(console=console, refresh_per_second=4, transient=False) as live:
        yield lambda view: live.update(Group(Text(headline(view)), trials_table(_shown(view), view.metric)))


def headline(view: SweepView) -> str:
    """Return one line: how many trials ended, the best so far with its values, and the time left."""
    parts = [f"{len(view.ended)} of {view.planned} trials ended, {len(view.trials) - len(view.ended)} under way"]
    best = view.best
    if best is not None and best.value is not None:
        parts.append(f"best so far {best.name}: {view.metric} {best.value:.4f} with {values_text(best.values)}")
    if view.seconds_left is not None:
        parts.append(f"{duration(view.seconds_left)} left")
    return "; ".join(parts)


def trials_table(views: Sequence[TrialView], metric: str) -> Table:
    """Return the table of trials, one line each."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("trial", "state", "epoch", metric, "values", ""):
        numeric = column in ("epoch", metric)
        table.add_column(column, justify="right" if numeric else "left", no_wrap=column not in ("values", ""))
    for view in views:
        table.add_row(*map(Text, _cells(view)), style=_STYLES.get(view.state))
    return table


def print_ranking(console: Console, found: Ranking, sweep: SweepFolder) -> None:
    """Print the ranked trials, what they were selected on, and what to do next."""
    best = found.best()
    console.print(_ranking_table(found))
    left_out = len(found.trials) - _MOST_RANKED
    if left_out > 0:
        _say(console, f"and {left_out} more in {sweep.ranking_path}")
    members = f"{len(found.seeds)} seed(s) x {found.folds} fold(s)"
    _say(console, f"{found.metric} {selected_on(found)}; mean over {members}, +- standard deviation over these members")
    if found.selection == "test":
        _say(console, _ON_TEST, style="yellow")
    if best is not None:
        _say(console, f"best    {best.name}, {value_text(best)}, {judged_text(found, best)}: {sweep.best_path}")
        _say(console, f"is it really better? sfora-ray sweep confirm {sweep.path}")
    report = sweep.report_path / "index.html"
    if report.is_file():
        _say(console, f"report  {report}")


def print_confirmed(console: Console, result: Confirmed) -> None:
    """Print each candidate: what the sweep promised, what fresh seeds gave, and whether it is better."""
    plan = result.plan
    table = Table(box=None, pad_edge=False, header_style="bold")
    fresh = f"fresh ({plan.selection})"
    for column in ("pack", f"promised ({plan.selection})", fresh, "test, mean", "difference [95 %]", "p (Holm)", ""):
        table.add_column(column, justify="left" if column in ("pack", "") else "right", no_wrap=bool(column))
    for verdict in result.verdicts:
        table.add_row(*map(Text, _verdict_cells(verdict)))
    console.print(table)
    for verdict in result.verdicts[1:]:
        _say(console, f"{verdict.label}: {values_text(verdict.values)}")
    _say(
        console,
        f"{plan.metric} of single members over {len(plan.seeds)} fresh seeds ({', '.join(map(str, plan.seeds))}), "
        "paired with the default's; t interval over seeds, p of sign flips adjusted for the number of packs. "
        "promised: what the sweep measured of the best of many draws; fresh: the same measure with these seeds, "
        "where packs hold out training classes.",
    )
    for label in result.labels:
        _say(console, label, style="yellow")
    if plan.selection == "test":
        _say(console, _ON_TEST, style="yellow")
    _say(console, f"report  {result.report}")


def values_text(values: Mapping[str, Any]) -> str:
    """Return values as ``path=value``, numbers short."""
    return " ".join(f"{path}={_short(value)}" for path, value in values.items()) or "the default"


def _shown(view: SweepView) -> list[TrialView]:
    """Return the trials under way and the newest that have ended, by number."""
    newest = view.ended[-_MOST_ENDED:]
    return [trial for trial in view.trials if trial not in view.ended or trial in newest]


def _cells(view: TrialView) -> list[str]:
    return [
        view.name,
        view.state,
        f"{view.epoch}/{view.epochs}" if view.epoch else "-",
        "-" if view.value is None else f"{view.value:.4f}",
        values_text(view.values),
        view.note,
    ]


def _ranking_table(found: Ranking) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("", "trial", "status", "epochs", found.metric, "+-", "values", "reason"):
        numeric = column in ("", "epochs", found.metric, "+-")
        table.add_column(column, justify="right" if numeric else "left", no_wrap=column not in ("values", "reason"))
    for trial in found.trials[:_MOST_RANKED]:
        table.add_row(*map(Text, _ranked_cells(trial)), style=_STYLES.get(trial.status))
    return table


def _ranked_cells(trial: RankedTrial) -> list[str]:
    return [
        str(trial.rank),
        trial.name,
        trial.status,
        str(trial.epochs),
        "-" if trial.value is None else f"{trial.value:.4f}",
        "" if trial.std is None else f"{trial.std:.4f}",
        values_text(trial.values),
        trial.reason,
    ]


def _verdict_cells(verdict: Verdict) -> list[str]:
    promised = "-" if verdict.promised is None else f"{verdict.promised:.4f}"
    ends = "" if verdict.ci95 is None else f" [{verdict.ci95[0]:+.4f}, {verdict.ci95[1]:+.4f}]"
    return [
        verdict.label,
        promised,
        "-" if verdict.remeasured is None else f"{verdict.remeasured:.4f}",
        f"{verdict.mean:.4f}",
        "" if verdict.difference is None else f"{verdict.difference:+.4f}{ends}",
        "" if verdict.p_holm is None else f"{verdict.p_holm:.4f}",
        verdict.says,
    ]


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value)


def _say(console: Console, text: str, style: str = "dim") -> None:
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


class _Lines:
    """Where there is no terminal: a line when a trial changes its state, and the whole now and then."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._states: dict[str, str] = {}
        self._next = time.monotonic()

    def __call__(self, view: SweepView) -> None:
        """Print what is new."""
        for trial in view.trials:
            if self._states.get(trial.name) != trial.state:
                self._print("  ".join(cell for cell in _cells(trial) if cell not in ("-", "")))
            self._states[trial.name] = trial.state
        if time.monotonic() >= self._next:
            self._print(headline(view))
            self._next = time.monotonic() + _SECONDS_BETWEEN_LINES

    def _print(self, text: str) -> None:
        self._console.print(text, soft_wrap=True, highlight=False, markup=False)
