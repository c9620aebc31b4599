"""The records of ``summary.json``: everything a report, a comparison or the tracker says about a pack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sfora_ray.config.member import Cause
from sfora_ray.options import Options
from sfora_ray.recipes import DistillationOptions, RecipeOptions

SINGLE = "single:"
"""What the name of a fold of each member alone starts with."""

FittedOn = Literal["none", "train", "test"]


def recipe_in_words(recipe: RecipeOptions) -> str:
    """Return a recipe by name, after the one that it is added to unless that is plain: ``memory + distillation``."""
    if isinstance(recipe, DistillationOptions) and recipe.base.name != "plain":
        return f"{recipe.base.name} + {recipe.name}"
    return recipe.name


class PackFacts(Options):
    """What was trained, on what, and how the epochs were chosen."""

    name: str
    digest: str
    dataset: str
    dataset_digest: str
    objective: str
    recipe: str
    """As :func:`recipe_in_words` puts it."""
    backbone: str
    weights: str
    dim: int
    num_members: int
    """Members that finished and are in every number of this summary."""
    num_planned: int
    selection: Literal["validation", "test", "last"]
    selection_metric: str
    epochs: int
    train_classes: int
    train_images: int
    test_classes: int
    test_images: int
    num_queries: int
    num_singletons: int
    notes: tuple[str, ...] = ()
    versions: dict[str, str] = {}

    @property
    def method(self) -> str:
        """Return the objective with its recipe, e.g. ``contrastive + memory + distillation``."""
        return self.objective if self.recipe == "plain" else f"{self.objective} + {self.recipe}"


class MemberFacts(Options):
    """One member's row."""

    id: str
    seed: int
    status: str
    cause: Cause = ""
    reason: str = ""
    restarts: tuple[str, ...] = ()
    """Why earlier attempts ended before their time, oldest first."""
    best_epoch: int | None = None
    metrics: dict[str, float] = {}
    train_seconds: float = 0.0
    images_per_second: float = 0.0
    warnings: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        """Return why it is in no number, e.g. ``signal, restarted twice: killed by SIGKILL``; empty if it finished."""
        if self.status == "finished":
            return ""
        return failure(self.cause, self.restarts, self.reason)


def failure(cause: Cause, restarts: Sequence[str], reason: str) -> str:
    """Return why a member failed, e.g. ``signal, restarted twice: killed by SIGKILL``."""
    kind = ", ".join(filter(None, (cause, restarted(restarts))))
    return ": ".join(filter(None, (kind, reason)))


def restarted(restarts: Sequence[str]) -> str:
    """Return how often a member began again, in words; empty if it never did."""
    times = {0: "", 1: "restarted once", 2: "restarted twice"}
    return times.get(len(restarts), f"restarted {len(restarts)} times")


class Spread(Options):
    """A metric over members: ``ci95`` is Student's t interval of the mean, absent for one member."""

    mean: float
    std: float | None
    n: int
    ci95: tuple[float, float] | None


class CurvePoint(Options):
    """Concatenations of ``size`` members, averaged over ``subsets`` choices of them.

    Choices share members, so ``ci95`` comes from the delete-one-member jackknife: it tells how far the mean would
    move with other seeds. It is absent for the whole pack, of which there is one.
    """

    size: int
    subsets: int
    metrics: dict[str, float]
    ci95: dict[str, tuple[float, float]] | None


class FoldFacts(Options):
    """One fold of the whole pack (or, for ``single:`` names, the mean over members of a fold of each)."""

    name: str
    dim: int
    fitted_on: FittedOn
    metrics: dict[str, float]
    retained: float
    """``recall_at_1`` over that of the concatenation."""
    ci95: tuple[float, float] | None = None
    """Of ``recall_at_1``: bootstrap over test classes of this one pack, so it holds for other classes, not seeds."""
    num_members: int

    @property
    def is_of_pack(self) -> bool:
        """Return whether this is a fold of several members, not of each alone."""
        return self.num_members > 1 and not self.name.startswith(SINGLE)


class Summary(Options):
    """What the report is made of."""

    format: Literal[1] = 1
    pack: PackFacts
    members: tuple[MemberFacts, ...]
    single: dict[str, Spread]
    pack_curve: tuple[CurvePoint, ...]
    folds: tuple[FoldFacts, ...]


def shipped_fold(summary: Summary) -> FoldFacts | None:
    """Return the fold that is shipped and headlined, or None where the config has no such fold.

    It is the first fold of the config that is no wider than one member and never saw a test image. The first, not
    the best on the test classes: that would be one more selection on the test.
    """
    for fold in summary.folds:
        if fold.fitted_on != "test" and fold.dim <= summary.pack.dim and fold.is_of_pack:
            return fold
    return None
