"""The sections of a sweep's report."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from typing import Any

from sfora_ray.config.sweep import SweepConfig
from sfora_ray.reporting.blocks import Block, Bullets, Column, Drawing, Folded, Paragraph, Section, Step, Steps, Table
from sfora_ray.reporting.sections.settings import flatten
from sfora_ray.reporting.sweep.axes import parameter_axes
from sfora_ray.reporting.sweep.figures import draw_best_so_far, draw_parallel, draw_scatter
from sfora_ray.reporting.wording import ABSENT, metric_title, percent
from sfora_ray.sweep.best import judged_text, selected_on
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.sweep.ranking import RankedStatus, RankedTrial, Ranking
from sfora_ray.sweep.records import SweepManifest

_STATUSES: tuple[tuple[RankedStatus, str], ...] = (
    ("finished", "finished"),
    ("stopped", "stopped early"),
    ("non_finite", "not finite"),
    ("failed", "failed"),
    ("unfinished", "not ended"),
)
_MARKS: dict[RankedStatus, str] = {
    "finished": "✓ ",
    "stopped": "◦ ",
    "non_finite": "✗ ",
    "failed": "✗ ",
    "unfinished": "",
}
_ON_TEST = (
    "selection: test. The configurations were chosen on the test classes themselves, as published tables do it. "
    "No number of these test classes is a fair estimate of anything now: expect less on new classes, and compare only "
    "with numbers chosen in the same way."
)


def result_section(sweep: SweepFolder, found: Ranking) -> Section:
    """Return the section that the report opens with."""
    blocks: list[Block] = []
    if found.selection == "test":
        blocks.append(Paragraph(_ON_TEST, "warning"))
    best = found.best()
    if best is None:
        blocks.append(Paragraph("No trial has come to anything yet.", "warning"))
        return Section("Result", tuple(blocks))
    blocks += [Paragraph(_sentence(found, best), "lead"), Steps(_steps(found, best)), _values(best)]
    blocks.append(
        Paragraph(
            "The best of many draws looks better than it is: part of its value is luck of these seeds and classes. "
            f'"sfora-ray sweep confirm {sweep.path.name}" answers whether it beats the default: it trains both '
            "with fresh, paired seeds.",
            "note",
        )
    )
    return Section("Result", tuple(blocks))


def figures_section(config: SweepConfig, found: Ranking) -> Section:
    """Return the figures."""
    axes, stamp, marks = parameter_axes(config), stamp_of(found), "Hollow: stopped early. A cross: came to nothing."
    spread = "" if found.members == 1 else " Bars: standard deviation over members."
    searched = ", ".join(axis.path for axis in axes)
    return Section(
        "Figures",
        (
            Drawing(
                "sweep_scatter",
                draw_scatter(found, axes, stamp),
                f"{metric_title(found.metric)} of {len(found.trials)} trials against {searched}",
                f"What each trial came to, against each searched parameter. {marks}{spread}",
            ),
            Drawing(
                "sweep_parallel",
                draw_parallel(found, axes, stamp),
                f"Each of {len(found.trials)} trials as a line over {searched} and its value",
                "Every trial as one line. The thick one is the best; strong lines are the best tenth; dashed ones were "
                "stopped early. Below an axis: the trial has no such parameter.",
            ),
            Drawing(
                "sweep_best_so_far",
                draw_best_so_far(found, stamp),
                f"{metric_title(found.metric)} of {len(found.trials)} trials in their order, and the best so far",
                f"The trials in their order, and the best finished one so far. {marks}{spread}",
            ),
        ),
    )


def trials_section(config: SweepConfig, found: Ranking) -> Section:
    """Return the ranking, a column for each searched parameter."""
    paths = tuple(config.space)
    columns = (
        Column("Rank", numeric=True),
        Column("Trial"),
        Column("Status"),
        Column(f"{metric_title(found.metric)}, %", numeric=True),
        Column("Std", numeric=True),
        Column("n", numeric=True),
        Column("Epochs", numeric=True),
        Column("Judged at", numeric=True),
        *(Column(path, numeric=True) for path in paths),
        Column("Reason"),
    )
    caption = (
        f"Trials by value: {stamp_of(found)}. Those that finished come first, then those stopped early, the ones that "
        "came further first. Std: over the n members of the judged epoch"
    )
    best = found.best()
    marked = frozenset({0}) if best is not None else frozenset[int]()
    table = Table(caption, columns, tuple(_row(trial, paths) for trial in found.trials), marked)
    faults = tuple(
        f"{trial.name}: {trial.reason}" for trial in found.trials if trial.status in ("non_finite", "failed")
    )
    blocks: tuple[Block, ...] = (table, Paragraph("What came to nothing:"), Bullets(faults)) if faults else (table,)
    return Section("Trials", blocks)


def settings_section(manifest: SweepManifest, found: Ranking) -> Section:
    """Return what was searched how, and every setting."""
    config = manifest.config
    facts = (
        ("Judged on", selected_on(found)),
        ("Judged by", f"{found.metric}, mean over members, {found.judged_by} epoch"),
        ("Seeds", ", ".join(str(seed) for seed in found.seeds)),
        ("Folds of the training classes", str(found.folds)),
        ("Searcher", _text(config.searcher.model_dump(mode="json"))),
        ("Scheduler", _text(config.scheduler.model_dump(mode="json"))),
        ("Start weights", manifest.weights or "none (random)"),
        ("Data set", f"{config.pack.data.name} (digest {manifest.dataset_digest})"),
        *(
            (f"Space: {path}", _text(one.model_dump(mode="json", exclude_defaults=True)))
            for path, one in config.space.items()
        ),
    )
    pair = (Column("Setting"), Column("Value"))
    settings = tuple(flatten(config.pack.plain()))
    versions = tuple(sorted(manifest.versions.items()))
    blocks = (
        Table("The sweep", pair, facts),
        Folded(f"The default pack, all {len(settings)} settings", (Table("Resolved configuration", pair, settings),)),
        Folded("Versions", (Table("Software", (Column("Package"), Column("Version")), versions),)),
    )
    return Section("Space and settings", blocks)


def stamp_of(found: Ranking) -> str:
    """Return in one line what the values are, with n and what was selected on."""
    seeds, folds = len(found.seeds), found.folds
    over = f"mean over {seeds} seed{'' if seeds == 1 else 's'}" + (f" × {folds} folds" if folds > 1 else "")
    return f"{metric_title(found.metric)} {selected_on(found)}; {over}; {found.judged_by} epoch"


def _sentence(found: Ranking, best: RankedTrial) -> str:
    counts = ", ".join(f"{number} {words}" for status, words in _STATUSES if (number := _count(found, status)))
    planned = f" of {found.planned}" if found.planned and found.planned > len(found.trials) else ""
    return (
        f"{len(found.trials)}{planned} trials ({counts}). The best is {best.name}: {metric_title(found.metric)} "
        f"{_value(best)} % {selected_on(found)}, {judged_text(found, best)}."
    )


def _steps(found: Ranking, best: RankedTrial) -> tuple[Step, ...]:
    finished = [trial.value for trial in found.trials if trial.status == "finished" and trial.value is not None]
    steps = []
    if len(finished) > 1:
        middle = statistics.median(finished)
        steps.append(Step("The median finished trial", percent(middle), f"of {len(finished)} that finished"))
    detail = f"{metric_title(found.metric)} in %, n = {len(best.members)}"
    return (*steps, Step(f"The best, {best.name}", _value(best), detail))


def _values(best: RankedTrial) -> Table:
    rows = tuple((path, _text(value)) for path, value in best.values.items())
    return Table(f"The values of {best.name}", (Column("Parameter"), Column("Value")), rows)


def _row(trial: RankedTrial, paths: Sequence[str]) -> tuple[str, ...]:
    return (
        str(trial.rank),
        trial.name,
        _MARKS[trial.status] + dict(_STATUSES)[trial.status],
        percent(trial.value),
        ABSENT if trial.std is None else percent(trial.std),
        str(len(trial.members)),
        str(trial.epochs),
        ABSENT if trial.judged_epoch is None else str(trial.judged_epoch),
        *(_text(trial.values[path]) if path in trial.values else ABSENT for path in paths),
        trial.reason,
    )


def _value(trial: RankedTrial) -> str:
    return percent(trial.value) + ("" if trial.std is None else f" ± {percent(trial.std)}")


def _count(found: Ranking, status: RankedStatus) -> int:
    return sum(trial.status == status for trial in found.trials)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.9g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
