"""What came out, in one sentence and three numbers; above it, what is missing."""

from __future__ import annotations

from sfora_ray.pack.summary import FoldFacts, Summary, shipped_fold
from sfora_ray.reporting.blocks import Block, Paragraph, Section, Step, Steps
from sfora_ray.reporting.result import concatenation_recall
from sfora_ray.reporting.wording import SELECTION_STAMPS, interval, members, percent, spread

_FITTED = {"none": "fitted on nothing", "train": "fitted on the training images"}


def headline(summary: Summary) -> Section:
    """Return the section that the report opens with."""
    blocks: list[Block] = []
    missing = _missing(summary)
    if missing:
        blocks.append(Paragraph(missing, "warning"))
    steps = _steps(summary)
    if steps:
        blocks += [Paragraph(_sentence(summary), "lead"), Steps(steps)]
    note = _choice_note(summary)
    if note:
        blocks.append(Paragraph(note, "note"))
    return Section("Result", tuple(blocks))


def _missing(summary: Summary) -> str:
    absent = [member for member in summary.members if member.status != "finished"]
    if not absent and summary.pack.num_members == summary.pack.num_planned:
        return ""
    named = "; ".join(f"{member.id} {member.status}" + (f" ({member.why})" if member.why else "") for member in absent)
    first = (
        f"Partial pack: {summary.pack.num_members} of {members(summary.pack.num_planned)} finished, "
        "and every number "
        f"below is of these alone."
    )
    return f"{first} Missing: {named}." if named else first


def _sentence(summary: Summary) -> str:
    """Return the main result in one sentence, with its n and how epochs were selected."""
    single = summary.single.get("recall_at_1")
    whole = concatenation_recall(summary)
    best = shipped_fold(summary)
    parts = []
    if single is not None:
        parts.append(f"one {summary.pack.method} model retrieves with a Recall@1 of {spread(single)} % on average")
    if whole is not None:
        parts.append(f"{members(summary.pack.num_members)} side by side reach {percent(whole)} %")
    if best is not None:
        parts.append(
            f"folded back to {best.dim} dimensions by {best.name} ({_FITTED[best.fitted_on]}) they keep "
            f"{percent(best.metrics['recall_at_1'])} %, which is {percent(best.retained)} % of that"
        )
    stamp = f"n = {summary.pack.num_members}, {SELECTION_STAMPS[summary.pack.selection]}"
    return f"On {summary.pack.dataset}, {'; '.join(parts)} ({stamp})."


def _steps(summary: Summary) -> tuple[Step, ...]:
    single = summary.single.get("recall_at_1")
    whole = concatenation_recall(summary)
    best = shipped_fold(summary)
    steps = []
    if single is not None:
        deviation = "" if single.std is None else f" ± {percent(single.std)}"
        detail = f"R@1 in %, {summary.pack.dim} dimensions, n = {single.n}"
        if single.ci95 is not None:
            detail += f", 95 % interval of the mean {interval(single.ci95)}"
        steps.append(Step("One member, mean ± std", percent(single.mean) + deviation, detail))
    if whole is not None:
        width = summary.pack.dim * summary.pack.num_members
        steps.append(
            Step(
                f"Concatenation of {members(summary.pack.num_members)}",
                percent(whole),
                f"R@1 in %, {width} dimensions",
            )
        )
    if best is not None:
        steps.append(_fold_step(best))
    return tuple(steps)


def _fold_step(best: FoldFacts) -> Step:
    detail = f"R@1 in %, {best.dim} dimensions, {_FITTED[best.fitted_on]}, {percent(best.retained)} % retained"
    if best.ci95 is not None:
        detail += f", 95 % interval over classes {interval(best.ci95)}"
    return Step(f"Folded to one member's width: {best.name}", percent(best.metrics["recall_at_1"]), detail)


def _choice_note(summary: Summary) -> str:
    if summary.pack.num_members < 2:
        return "With fewer than two members there is nothing to concatenate or fold, and no interval over seeds."
    if shipped_fold(summary) is None:
        return "No fold ends at one member's width without having seen test images: no folded number here."
    return (
        "The fold named here is the first of the configuration's list that ends at one member's width and saw no "
        "test image; it is the one that ships. It was not chosen by its score."
    )
