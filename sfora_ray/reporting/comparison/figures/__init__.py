"""The figures of a comparison, one function each; each returns the text of an SVG document."""

from sfora_ray.reporting.comparison.figures.ablation import draw_ablation
from sfora_ray.reporting.comparison.figures.folds import draw_folds
from sfora_ray.reporting.comparison.figures.forest import draw_forest
from sfora_ray.reporting.comparison.figures.learning_curves import draw_learning_curves
from sfora_ray.reporting.comparison.figures.pack_curves import draw_pack_curves

__all__ = ["draw_ablation", "draw_folds", "draw_forest", "draw_learning_curves", "draw_pack_curves"]
