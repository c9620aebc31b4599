"""The two kinds of fold.

An inductive fold is fitted on training classes: its ``fit`` has no parameter through which test blocks could
enter. A transductive fold is fitted on the very blocks it is scored on, an upper bound; it is another type
with another method, so that neither can be taken for the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from sfora_ray.arrays import Float, Int64
from sfora_ray.card import Card
from sfora_ray.folds.fitted import FittedFold
from sfora_ray.folds.moments import Moments
from sfora_ray.options import Options


class FoldOptions(Options, ABC):
    """Options of a fold. Each has a ``name``, its key in the fold table, and some a width ``dim``."""

    card: ClassVar[Card]
    """Its row in the table of methods."""

    improves_single: ClassVar[bool] = False
    """Whether the fold also changes how one member alone ranks; a pack's gain is then told against that."""

    @property
    def canonical_name(self) -> str:
        """The fold's name, its width if one is set, and options that differ from their default."""
        given = self.model_dump(exclude_defaults=True, exclude={"name", "dim"})
        name, dim = (getattr(self, key, None) for key in ("name", "dim"))
        return "-".join([str(name), *([str(dim)] if dim else []), *(f"{key}={given[key]}" for key in given)])

    @property
    def needs_rows(self) -> bool:
        """Whether the fit cannot be computed from moments, only from rows."""
        return False


class InductiveFold(FoldOptions, ABC):
    """A fold that never sees what it is scored on."""

    @abstractmethod
    def fit(self, train: Moments) -> FittedFold:
        """Fit on the moments of the training classes.

        Raises:
            ConfigError: the options do not fit these members.
        """

    def fit_rows(self, train: Sequence[Float], labels: Int64) -> FittedFold:
        """Fit on the rows of the training classes; the same as ``fit``, where that is possible."""
        return self.fit(Moments.of(train, labels))


class TransductiveFold(FoldOptions, ABC):
    """A fold fitted on the blocks it is scored on: an upper bound, labelled as such."""

    @abstractmethod
    def fit_transductive(self, scored: Moments) -> FittedFold:
        """Fit on the moments of the blocks that will be scored."""

    def fit_rows_transductive(self, scored: Sequence[Float], labels: Int64) -> FittedFold:
        """Fit on the rows that will be scored."""
        return self.fit_transductive(Moments.of(scored, labels))
