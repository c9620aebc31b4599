"""A sweep's figures: the value against each parameter, the best so far, and all parameters side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from sfora_ray.reporting.figures.style import GRID, INK, MUTED, PAPER, SERIES, draw, say_empty
from sfora_ray.reporting.sweep.axes import ParameterAxis, Tick
from sfora_ray.reporting.wording import metric_title
from sfora_ray.sweep.ranking import RankedTrial, Ranking

_PER_ROW = 3
_TRIED, _BEST, _FAULTY = SERIES[0], SERIES[1], SERIES[3]
_ABSENT = -0.13
_NO_VALUE = "no trial has a value"
_SMALL = 7.5


def draw_scatter(found: Ranking, axes: Sequence[ParameterAxis], stamp: str) -> str:
    """Draw each trial's value (per cent) against each parameter; hollow: stopped early, a ring: the best."""
    rows, columns = math.ceil(len(axes) / _PER_ROW), min(len(axes), _PER_ROW)

    def paint(figure: Figure) -> None:
        _stamp(figure, found, stamp)
        panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for place, panel in enumerate(panels.flat):
            if place < len(axes):
                _scatter(panel, found, axes[place])
            else:
                panel.set_visible(False)
        for row in panels:
            row[0].set_ylabel(_value_title(found))
        _legend(figure, found)

    return draw("sweep_scatter", 1.0 + 2.3 * rows, paint)


def draw_best_so_far(found: Ranking, stamp: str) -> str:
    """Draw every trial's value (per cent) in the order of their numbers, and the best of those that had finished."""

    def paint(figure: Figure) -> None:
        _stamp(figure, found, stamp)
        panel = figure.subplots()
        panel.set_xlabel("trial")
        panel.set_ylabel(_value_title(found))
        _points(panel, found, {trial.number: float(trial.number) for trial in found.trials})
        steps = _running_best(found)
        if steps:
            numbers, values = zip(*steps, strict=True)
            panel.step(numbers, values, where="post", color=_BEST, linewidth=1.4, zorder=2)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        _legend(figure, found, Line2D([], [], color=_BEST, linewidth=1.4, label="best finished so far"))

    return draw("sweep_best_so_far", 3.1, paint)


def draw_parallel(found: Ranking, axes: Sequence[ParameterAxis], stamp: str) -> str:
    """Draw each trial as a line over all parameters to its value; strong: the best tenth, dashed: stopped early."""

    def paint(figure: Figure) -> None:
        _stamp(figure, found, stamp)
        panel = figure.subplots()
        panel.grid(False)
        panel.set_yticks([])
        for side in ("left", "bottom"):
            panel.spines[side].set_visible(False)
        valued = _valued(found)
        if not valued:
            say_empty(panel, _NO_VALUE)
            return
        low, high = _range(valued)
        for trial in reversed(valued):
            _strand(panel, found, trial, axes, (100 * (trial.value or 0.0) - low) / (high - low))
        ends = (Tick(0.0, f"{low:.1f}"), Tick(0.5, f"{(low + high) / 2:.1f}"), Tick(1.0, f"{high:.1f}"))
        for place, ticks in enumerate([*(axis.ticks() for axis in axes), ends]):
            _rail(panel, place, ticks)
        titles = [axis.path.replace(".", ".\n", 1) + (f"\n({axis.scale})" if axis.scale else "") for axis in axes]
        panel.set_xticks(range(len(axes) + 1), [*titles, _value_title(found).replace(", ", ",\n")])
        panel.tick_params(axis="x", length=0, labelsize=_SMALL)
        panel.set_xlim(-0.35, len(axes) + 0.25)
        panel.set_ylim(_ABSENT - 0.08, 1.06)

    return draw("sweep_parallel", 3.6, paint)


def _value_title(found: Ranking) -> str:
    return f"{metric_title(found.metric)}, per cent"


def _stamp(figure: Figure, found: Ranking, stamp: str) -> None:
    """Write into the figure itself what the values are, for figures are copied without their captions."""
    figure.suptitle(stamp, x=0.01, ha="left", fontsize=_SMALL, color=_BEST if found.selection == "test" else MUTED)


def _valued(found: Ranking) -> list[RankedTrial]:
    """Return the trials whose value means something, the best first."""
    return [trial for trial in found.trials if trial.value is not None and trial.status not in ("non_finite", "failed")]


def _is_full(trial: RankedTrial) -> bool:
    return trial.status == "finished"


def _range(trials: Sequence[RankedTrial]) -> tuple[float, float]:
    """Return the smallest and the largest value, per cent, never the same."""
    values = [100 * trial.value for trial in trials if trial.value is not None]
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 1.0, high + 1.0)


def _scatter(panel: Axes, found: Ranking, axis: ParameterAxis) -> None:
    places = {trial.number: axis.at(trial.values) for trial in found.trials}
    _points(panel, found, {number: place for number, place in places.items() if place is not None})
    ticks = _apart(axis.ticks())
    panel.set_xticks([tick.at for tick in ticks], [tick.label for tick in ticks])
    panel.set_xlim(-0.06, 1.06)
    panel.set_xlabel(axis.path + (f" ({axis.scale})" if axis.scale else ""))


def _apart(ticks: Sequence[Tick]) -> list[Tick]:
    """Return the ticks whose labels do not run into one another: the ends, and what has room between."""
    if len(ticks) < 3:
        return list(ticks)
    kept = [ticks[0]]
    for tick in ticks[1:-1]:
        if tick.at - kept[-1].at > 0.2 and ticks[-1].at - tick.at > 0.2:
            kept.append(tick)
    return [*kept, ticks[-1]]


def _points(panel: Axes, found: Ranking, places: dict[int, float]) -> None:
    """Mark each trial: filled if it finished, hollow if not, a cross at the foot if it came to nothing."""
    best, shown = found.best(), [trial for trial in found.trials if trial.number in places]
    for trial in reversed(shown):
        place = places[trial.number]
        if trial not in _valued(found):
            at_foot = panel.get_xaxis_transform()
            panel.plot(place, 0.02, "x", transform=at_foot, color=_FAULTY, markersize=5.5, clip_on=False)
            continue
        face = _TRIED if _is_full(trial) else PAPER
        value = 100 * (trial.value or 0.0)
        if trial.std is not None:
            panel.errorbar(place, value, yerr=100 * trial.std, color=_TRIED, elinewidth=0.7, alpha=0.6, zorder=2)
        panel.plot(place, value, "o", markersize=5, markerfacecolor=face, markeredgecolor=_TRIED, zorder=3)
        if best is not None and trial.number == best.number:
            panel.plot(place, value, "o", markersize=10, markerfacecolor="none", markeredgecolor=_BEST, zorder=4)
    panel.margins(y=0.12)
    if not any(trial in _valued(found) for trial in shown):
        say_empty(panel, _NO_VALUE)


def _running_best(found: Ranking) -> list[tuple[int, float]]:
    """Return ``(trial, best value so far)`` of finished trials by number, per cent."""
    steps: list[tuple[int, float]] = []
    for trial in sorted((one for one in _valued(found) if _is_full(one)), key=lambda one: one.number):
        value = 100 * (trial.value or 0.0)
        steps.append((trial.number, max(value, steps[-1][1]) if steps else value))
    if steps:
        steps.append((max(trial.number for trial in found.trials), steps[-1][1]))
    return steps


def _strand(panel: Axes, found: Ranking, trial: RankedTrial, axes: Sequence[ParameterAxis], height: float) -> None:
    places = [axis.at(trial.values) for axis in axes]
    heights = [_ABSENT if place is None else place for place in places] + [height]
    best, full = found.best(), _is_full(trial)
    is_best = best is not None and trial.number == best.number
    strong = is_best or (full and trial.rank <= max(1, len(found.trials) // 10))
    panel.plot(
        range(len(heights)),
        heights,
        color=_BEST if is_best else _TRIED if strong or full else MUTED,
        linewidth=2.2 if is_best else 1.6 if strong else 1.0,
        linestyle="-" if full else (0, (3, 2)),
        alpha=1.0 if strong else 0.45,
        zorder=4 if is_best else 2,
    )


def _rail(panel: Axes, place: int, ticks: Sequence[Tick]) -> None:
    panel.plot([place, place], [0, 1], color=GRID, linewidth=1.4, zorder=1)
    for tick in ticks:
        panel.annotate(
            tick.label,
            (place, tick.at),
            xytext=(-4, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=_SMALL,
            color=INK,
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.8},
            zorder=5,
        )


def _legend(figure: Figure, found: Ranking, *more: Line2D) -> None:
    """Name the marks that occur."""
    statuses = {trial.status for trial in found.trials}
    named = [
        ("finished", "o", _TRIED, _TRIED, bool(statuses & {"finished"})),
        ("stopped early or unfinished", "o", PAPER, _TRIED, bool(statuses & {"stopped", "unfinished"})),
        ("failed or not finite", "x", _FAULTY, _FAULTY, bool(statuses & {"failed", "non_finite"})),
        ("the best", "o", "none", _BEST, found.best() is not None),
    ]
    handles = [
        Line2D(
            [],
            [],
            linestyle="none",
            marker=mark,
            markerfacecolor=face,
            markeredgecolor=edge,
            markersize=5.5,
            label=text,
        )
        for text, mark, face, edge, occurs in named
        if occurs
    ]
    if handles or more:
        figure.legend(handles=[*handles, *more], loc="outside lower center", ncols=4)
