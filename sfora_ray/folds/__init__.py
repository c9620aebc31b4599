"""Folds: maps from the blocks of a pack's members to one matrix, each fitted from moments."""

from sfora_ray.folds.base import FoldOptions, InductiveFold, TransductiveFold
from sfora_ray.folds.composed import ComposedOptions
from sfora_ray.folds.fitted import FittedFold, FittedOn
from sfora_ray.folds.gpa import GpaOptions, GpaTransductiveOptions
from sfora_ray.folds.moments import Moments
from sfora_ray.folds.names import AnyFold, FoldUnion, parse_fold
from sfora_ray.folds.plain import ConcatOptions, MeanOptions, RandomOptions
from sfora_ray.folds.procrustes import ProcrustesOptions
from sfora_ray.folds.projections import PcaOptions, PcaTransductiveOptions, UncentredOptions
from sfora_ray.folds.published import published_rotations
from sfora_ray.folds.wccn import WccnOptions

FOLDS: dict[str, type[FoldOptions]] = {
    "concat": ConcatOptions,
    "mean": MeanOptions,
    "procrustes": ProcrustesOptions,
    "gpa": GpaOptions,
    "gpa_transductive": GpaTransductiveOptions,
    "pca": PcaOptions,
    "pca_transductive": PcaTransductiveOptions,
    "uncentred": UncentredOptions,
    "wccn": WccnOptions,
    "random": RandomOptions,
    "composed": ComposedOptions,
}

__all__ = [
    "FOLDS",
    "AnyFold",
    "ComposedOptions",
    "ConcatOptions",
    "FittedFold",
    "FittedOn",
    "FoldOptions",
    "FoldUnion",
    "GpaOptions",
    "GpaTransductiveOptions",
    "InductiveFold",
    "MeanOptions",
    "Moments",
    "PcaOptions",
    "PcaTransductiveOptions",
    "ProcrustesOptions",
    "RandomOptions",
    "TransductiveFold",
    "UncentredOptions",
    "WccnOptions",
    "parse_fold",
    "published_rotations",
]
