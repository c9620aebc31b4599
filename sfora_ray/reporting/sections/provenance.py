"""What was selected and fitted on what, and what each interval means; without it a number is half told."""

from __future__ import annotations

from sfora_ray.pack.summary import FittedOn, Summary
from sfora_ray.reporting.blocks import Block, Box, Bullets, Paragraph, Section
from sfora_ray.reporting.wording import metric_title

_GROUPS: tuple[tuple[FittedOn, str], ...] = (
    ("none", "Fitted on nothing"),
    ("train", "Fitted on the embeddings of the training images (inductive)"),
    (
        "test",
        "Fitted on the very test embeddings it is scored on (transductive: an upper bound, not a method to ship)",
    ),
)


def provenance(summary: Summary) -> Section:
    """Return the section about selection, fitting and intervals."""
    selected = Box("Epochs", (Paragraph(_selection(summary)),))
    fitted = Box("Folds", _fits(summary))
    intervals = Box("Intervals", (Bullets(_intervals(summary)),))
    return Section("What was selected and fitted on what", (selected, fitted, intervals))


def _selection(summary: Summary) -> str:
    metric = metric_title(summary.pack.selection_metric)
    if summary.pack.selection == "validation":
        return (
            f"Selection split: validation. Each member keeps the epoch with the best {metric} on "
            "training classes that "
            "were held out of its training. The test classes had no say."
        )
    if summary.pack.selection == "test":
        return (
            f"Selection split: test. Each member keeps the epoch with the best {metric} on the test "
            "classes themselves, "
            "which is how papers of this field print their numbers. Such numbers are optimistic: "
            "expect less on new "
            "classes, and compare them only with numbers selected in the same way."
        )
    return "Selection split: none. Each member keeps its last epoch; nothing was selected by any number."


def _fits(summary: Summary) -> tuple[Block, ...]:
    lines = []
    for fitted_on, title in _GROUPS:
        names = [fold.name for fold in summary.folds if fold.fitted_on == fitted_on]
        if names:
            lines.append(f"{title}: {', '.join(names)}.")
    return (Bullets(tuple(lines)),) if lines else (Paragraph("No fold was made."),)


def _intervals(summary: Summary) -> tuple[str, ...]:
    return (
        "After a mean over members: ± is the standard deviation over the n = "
        f"{summary.pack.num_members} seeds, and the "
        "brackets hold the 95 % interval of the mean (Student's t). It speaks of other seeds, on "
        "these classes.",
        "On the pack-size curve: the 95 % jackknife interval of the mean over subsets. Subsets share members, "
        "so members are what is left out in turn. It speaks of other seeds; the whole pack has none.",
        "Beside a fold: the 95 % bootstrap interval over test classes, of this one pack. It speaks "
        "of other classes, "
        "with these seeds.",
    )
