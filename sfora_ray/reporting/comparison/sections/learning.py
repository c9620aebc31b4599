"""How the packs' members learnt, over each other."""

from __future__ import annotations

from sfora_ray.comparison.records import Comparison
from sfora_ray.reporting.blocks import Drawing, Paragraph, Section
from sfora_ray.reporting.comparison.figures import draw_learning_curves
from sfora_ray.reporting.comparison.figures.learning_curves import shown_keys, shown_split
from sfora_ray.reporting.comparison.wording import members_stamp, selection_sentence


def learning_section(comparison: Comparison) -> Section:
    """Return the learning curves, or a sentence where no pack has any."""
    if not shown_keys(comparison.entries):
        return Section("Learning", (Paragraph("No pack has epochs that were evaluated.", "note"),))
    split = shown_split(comparison.entries)
    drawing = Drawing(
        "comparison_learning_curves",
        draw_learning_curves(comparison.entries),
        f"Retrieval on {split} over epochs, one line a pack with its interval",
        "Mean over the members of each pack; the band is the 95 % t interval of that mean, "
        f"{members_stamp(comparison.entries)}. {selection_sentence(comparison.entries)} Losses are drawn only "
        "where all packs have one objective; terms that one pack adds to it raise its line.",
    )
    return Section("Learning", (drawing,))
