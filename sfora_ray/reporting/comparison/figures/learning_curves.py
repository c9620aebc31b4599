"""How each pack's members learn: the mean over members with its interval, packs over each other."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sfora_ray.comparison.records import Entry, LearningPoint
from sfora_ray.reporting.comparison.figures.style import Look, add_legend, add_stamp
from sfora_ray.reporting.comparison.wording import members_stamp, selection_stamp
from sfora_ray.reporting.figures.style import draw, say_empty
from sfora_ray.reporting.wording import metric_title

LOSS = "train.loss"
_METRICS = ("recall_at_1", "map_at_r")


def draw_learning_curves(entries: Sequence[Entry]) -> str:
    """Draw Recall@1 and MAP@R over epochs, and the loss where all packs have one objective."""
    keys = shown_keys(entries)

    def paint(figure: Figure) -> None:
        add_stamp(figure, ["Mean over members; band: 95 % t interval of the mean; " + members_stamp(entries),
                           selection_stamp(entries)])  # fmt: skip
        panels = figure.subplots(max(len(keys), 1), 1, sharex=True, squeeze=False)[:, 0]
        for axes, key in zip(panels, keys, strict=False):
            _panel(axes, entries, key)
        if not keys:
            say_empty(panels[0], "no epoch was evaluated")
            return
        panels[-1].set_xlabel("epoch")
        panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
        add_legend(figure, panels[0])

    return draw("comparison_learning_curves", 1.0 + 2.0 * max(len(keys), 1), paint)


def shown_keys(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return the curves worth drawing: retrieval on the split that most packs measured, and comparable losses."""
    split = shown_split(entries)
    keys = [f"{split}.{metric}" for metric in _METRICS if any(f"{split}.{metric}" in one.epochs for one in entries)]
    # Losses of different objectives have different units.
    if len({entry.facts.objective for entry in entries}) == 1 and any(LOSS in entry.epochs for entry in entries):
        keys.append(LOSS)
    return tuple(keys)


def shown_split(entries: Sequence[Entry]) -> str:
    """Return the split that most packs measured in training; of equals, ``test``, which all packs share."""
    counts = {
        split: sum(f"{split}.recall_at_1" in entry.epochs for entry in entries) for split in ("test", "validation")
    }
    return max(counts, key=lambda split: counts[split])


def _panel(axes: Axes, entries: Sequence[Entry], key: str) -> None:
    split, _, metric = key.partition(".")
    axes.set_title("Training loss" if key == LOSS else f"{metric_title(metric)} of one member on {split} (per cent)")
    scale = 1.0 if key == LOSS else 100.0
    for place, entry in enumerate(entries):
        if entry.epochs.get(key):
            _curve(axes, entry.label, entry.epochs[key], Look.of(place), scale)


def _curve(axes: Axes, label: str, curve: Sequence[LearningPoint], look: Look, scale: float) -> None:
    epochs = [point.epoch for point in curve]
    # A line of one point would be invisible.
    marker = look.marker if len(curve) <= 12 else ""
    means = [scale * point.mean for point in curve]
    axes.plot(epochs, means, color=look.colour, linestyle=look.dashes, label=label, marker=marker, markersize=4)
    low = [scale * (point.mean if point.ci95 is None else point.ci95[0]) for point in curve]
    high = [scale * (point.mean if point.ci95 is None else point.ci95[1]) for point in curve]
    axes.fill_between(epochs, low, high, color=look.colour, alpha=0.15, linewidth=0)
