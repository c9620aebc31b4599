"""The report's figures, one function each; each returns the text of an SVG document."""

from sfora_ray.reporting.figures.fold_plane import draw_fold_plane
from sfora_ray.reporting.figures.learning_curves import MemberCurve, draw_learning_curves
from sfora_ray.reporting.figures.pack_curve import draw_pack_curve

__all__ = ["MemberCurve", "draw_fold_plane", "draw_learning_curves", "draw_pack_curve"]
