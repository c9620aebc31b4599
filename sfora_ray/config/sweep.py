"""The whole configuration of a sweep: a pack, what is varied in it, how, and what a configuration is judged by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, GetJsonSchemaHandler, NonNegativeInt, PositiveInt, field_validator
from pydantic_core import CoreSchema

from sfora_ray.config.overrides import with_values
from sfora_ray.config.pack import PackConfig, Seed, Slug
from sfora_ray.config.schedulers import SCHEDULERS, AshaOptions, HyperbandOptions, NoScheduler, PbtOptions
from sfora_ray.options import Options, one_of
from sfora_ray.search import DISTRIBUTIONS, SEARCHERS, Distribution, SearcherOptions, Space
from sfora_ray.search.random_search import RandomOptions

if TYPE_CHECKING:
    AnyDistribution = Distribution
    AnySearcher = SearcherOptions
    AnyScheduler = NoScheduler | AshaOptions | HyperbandOptions | PbtOptions
else:
    AnyDistribution = one_of(DISTRIBUTIONS, "distribution")
    AnySearcher = one_of(SEARCHERS)
    AnyScheduler = one_of(SCHEDULERS)


class _OrItsPath:
    """Tells editors that a file may name the pack's own file instead."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, handler(core)]}


class SweepSelectionOptions(Options):
    """What a configuration is judged by."""

    split: Literal["validation", "test"] = "validation"
    """`validation`: held-out training classes. `test`: the test classes; stamped on everything that comes of it."""
    metric: Literal["recall_at_1", "map_at_r"] = "recall_at_1"
    folds: PositiveInt = 1
    """1 holds out a fraction of the training classes. From 2 on they are dealt to so many class-disjoint folds, a
    member is trained for each with it held out, and the mean counts."""
    fraction: float = Field(default=0.2, gt=0, lt=1)
    """Share of the training classes held out where there is one fold."""
    seed: NonNegativeInt = 0
    """Names the choice of held-out classes."""
    epoch: Literal["best", "last"] = "best"
    """Which epoch's mean over the members counts."""


class SweepConfig(Options):
    """A sweep: a pack, and what is varied in it."""

    name: Slug
    pack: Annotated[PackConfig, _OrItsPath()]
    """The pack that is varied: the path of its file, relative to the sweep's, or all its keys."""
    set: dict[str, Any] = {}
    """Dotted paths in the pack and their values, for all trials and for what is confirmed later."""
    space: dict[str, AnyDistribution]
    """Dotted paths in the pack and what may stand there, in the order in which they are decided and set."""
    trials: PositiveInt | None = None
    """How many configurations are tried. A grid is walked to its end where absent."""
    seeds: tuple[Seed, ...] = (0,)
    """Each configuration is trained with all of these, and judged by the mean."""
    searcher: AnySearcher = RandomOptions()
    scheduler: AnyScheduler = NoScheduler()
    selection: SweepSelectionOptions = SweepSelectionOptions()
    max_concurrent_trials: PositiveInt | None = None
    """At most so many trials at a time; as many as fit where absent."""
    max_failures: NonNegativeInt = 2
    """How often a trial starts again from its checkpoints after its process or node was lost."""

    @field_validator("seeds")
    @classmethod
    def _seeds_differ(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if not seeds:
            raise ValueError("must name at least one seed")
        if len({*seeds}) != len(seeds):
            raise ValueError("must not repeat a seed, for it would be the same model twice")
        return seeds

    @field_validator("space")
    @classmethod
    def _searches_something(cls, space: dict[str, Distribution]) -> dict[str, Distribution]:
        if not space:
            raise ValueError("must name at least one path to search")
        return space

    @property
    def search_space(self) -> Space:
        """Return the space to search."""
        return Space(self.space)

    @property
    def num_trials(self) -> int | None:
        """Return how many configurations are tried: as many as are asked for, or the size of the grid."""
        return self.searcher.size(self.search_space) if self.trials is None else self.trials

    @property
    def is_on_test(self) -> bool:
        """Return whether configurations are chosen on the test classes."""
        return self.selection.split == "test"

    def plain(self) -> dict[str, Any]:
        """Return the whole configuration as JSON values."""
        return self.model_dump(mode="json")

    def digest(self) -> str:
        """Return ten hexadecimal digits that name what is computed.

        A sweep can be given more trials, another place or other limits and stays the same; see also the pack's digest.
        """
        values = self.model_dump(mode="json", include={"name", "seeds", "searcher", "scheduler", "selection"})
        # Pairs, for the order of the space matters and sorted keys would hide it.
        space = [[path, one.model_dump(mode="json")] for path, one in self.space.items()]
        text = json.dumps({**values, "space": space, "pack": self.pack.digest()}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    @property
    def run_name(self) -> str:
        """Return the name of the sweep's folder: ``<name>-<digest10>``."""
        return f"{self.name}-{self.digest()}"

    @property
    def folder(self) -> Path:
        """Return the sweep's folder, beside the run folders of packs."""
        return self.pack.output_folder / self.run_name

    def member_names(self) -> tuple[tuple[str, int, int], ...]:
        """Return the members of each trial: name, seed and the fold of classes that is held out."""
        return tuple(
            (f"seed{seed}-fold{fold}", seed, fold) for seed in self.seeds for fold in range(self.selection.folds)
        )

    def candidate(self, values: Mapping[str, Any]) -> PackConfig:
        """Return the pack with these values, its own seeds and its own selection.

        Raises:
            pydantic.ValidationError: the values do not fit together.
        """
        return PackConfig.model_validate(self._with(values))

    def trial_config(self, values: Mapping[str, Any], seed: int, fold: int) -> PackConfig:
        """Return what one member of a trial is trained by: the pack with these values, judged as the sweep says.

        Raises:
            pydantic.ValidationError: the values do not fit together.
        """
        chosen = self.selection
        selection: dict[str, Any] = {"split": chosen.split, "metric": chosen.metric}
        if chosen.split == "validation":
            selection |= {"validation_fraction": chosen.fraction, "validation_seed": chosen.seed}
        if chosen.folds > 1:
            selection |= {"validation_folds": chosen.folds, "validation_fold": fold}
        own = {"seeds": [seed], "min_members": 1, "folds": [], "selection": selection}
        return PackConfig.model_validate(self._with(values) | own)

    def _with(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the pack as JSON values with some set, a part before what lies within it."""
        ordered = {path: values[path] for path in self.space if path in values}
        return with_values(self.pack.plain(), ordered, place="space")
