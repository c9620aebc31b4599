"""The members one by one, how they learnt, and what they are on average."""

from __future__ import annotations

from collections.abc import Iterable

from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summary import MemberFacts, Summary, restarted
from sfora_ray.reporting.blocks import Block, Bullets, Column, Drawing, Paragraph, Section, Table
from sfora_ray.reporting.figures import MemberCurve, draw_learning_curves
from sfora_ray.reporting.wording import (
    ABSENT,
    SELECTION_STAMPS,
    duration,
    interval,
    metric_order,
    metric_title,
    percent,
    rate,
)
from sfora_ray.training.member_folder import EpochRecord


def members_section(run: RunFolder, summary: Summary) -> Section:
    """Return the members' table, the learning curves and the spread over members."""
    blocks: list[Block] = [_table(summary)]
    remarks = _remarks(summary)
    if remarks:
        blocks += [Paragraph("Remarks:"), Bullets(remarks)]
    blocks.append(_curves(run, summary))
    if summary.single:
        blocks.append(_spread(summary))
    return Section("Members", tuple(blocks))


def _remarks(summary: Summary) -> tuple[str, ...]:
    """Return why members failed or began again, and their warnings."""
    return tuple(
        f"{member.id}: {remark}"
        for member in summary.members
        for remark in (member.why, *_restarts(member), *member.warnings)
        if remark
    )


def _restarts(member: MemberFacts) -> tuple[str, ...]:
    return (f"{restarted(member.restarts)}: {'; '.join(member.restarts)}",) if member.restarts else ()


def _table(summary: Summary) -> Table:
    metrics = metric_order(member.metrics for member in summary.members)
    columns = (
        Column("Member"),
        Column("Seed", numeric=True),
        Column("Status"),
        Column("Epoch", numeric=True),
        *(Column(metric_title(metric), numeric=True) for metric in metrics),
        Column("Images/s", numeric=True),
        Column("Training", numeric=True),
    )
    rows = tuple(_row(member, metrics) for member in summary.members)
    stamp = SELECTION_STAMPS[summary.pack.selection]
    return Table(f"Test metrics of each member's selected epoch, in % ({stamp})", columns, rows)


def _row(member: MemberFacts, metrics: Iterable[str]) -> tuple[str, ...]:
    return (
        member.id,
        str(member.seed),
        ("✓ " if member.status == "finished" else "✗ ") + member.status,
        ABSENT if member.best_epoch is None else str(member.best_epoch),
        *(percent(member.metrics.get(metric)) for metric in metrics),
        rate(member.images_per_second),
        duration(member.train_seconds),
    )


def _curves(run: RunFolder, summary: Summary) -> Drawing:
    epochs = {spec.id: run.member(spec).epochs() for spec in run.specs()}
    split = _shown_split(summary, [record for records in epochs.values() for record in records])
    chosen = {member.id: member.best_epoch for member in summary.members}
    curves = [
        MemberCurve(
            identifier,
            tuple((record.epoch, record.loss["total"]) for record in records if "total" in record.loss),
            _recall(records, split),
            chosen.get(identifier),
        )
        for identifier, records in epochs.items()
    ]
    last = max((curve.loss[-1][0] for curve in curves if curve.loss), default=0)
    return Drawing(
        "learning_curves",
        draw_learning_curves(curves, split=split),
        f"Training loss and Recall@1 on {split} of {len(curves)} members over {last} epochs",
        f"Loss and Recall@1 on {split} by epoch, one line per member; a ring marks the selected epoch.",
    )


def _shown_split(summary: Summary, records: list[EpochRecord]) -> str:
    """Return the split that epochs were selected on; where none was, the one that was measured."""
    measured = {split for record in records for split in record.metrics}
    if summary.pack.selection in measured:
        return summary.pack.selection
    return "test" if "test" in measured or not measured else min(measured)


def _recall(records: list[EpochRecord], split: str) -> tuple[tuple[int, float], ...]:
    return tuple(
        (record.epoch, record.metrics[split]["recall_at_1"])
        for record in records
        if "recall_at_1" in record.metrics.get(split, {})
    )


def _spread(summary: Summary) -> Table:
    columns = (
        Column("Metric"),
        Column("Mean", numeric=True),
        Column("Std", numeric=True),
        Column("95 % interval of the mean", numeric=True),
        Column("n", numeric=True),
    )
    rows = []
    for metric in metric_order([summary.single]):
        value = summary.single[metric]
        rows.append(
            (
                metric_title(metric),
                percent(value.mean),
                percent(value.std),
                interval(value.ci95),
                str(value.n),
            )
        )
    stamp = SELECTION_STAMPS[summary.pack.selection]
    return Table(f"One member: mean and spread over seeds, in % ({stamp}; Student's t interval)", columns, tuple(rows))
