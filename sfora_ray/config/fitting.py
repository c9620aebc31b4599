"""Whether objective, miner, recipe and sampler can work together, found out before anything is read or trained."""

from __future__ import annotations

from collections.abc import Iterator

from sfora_ray.losses import LOSSES, LossOptions
from sfora_ray.mining import MinerOptions
from sfora_ray.recipes import DistillationOptions, RecipeOptions
from sfora_ray.samplers import SamplerOptions


def misfits(
    loss: LossOptions, miner: MinerOptions | None, recipe: RecipeOptions, sampler: SamplerOptions, *, dim: int
) -> list[str]:
    """Return every problem of such a combination, each with the way out.

    Args:
        loss: the objective.
        miner: what chooses its tuples, if anything does.
        recipe: how a step is composed.
        sampler: what makes a batch.
        dim: width of the rows that losses see.
    """
    per_class = sampler.images_per_class
    return [
        *_no_positives(loss, recipe, per_class),
        *_given(loss.batch_problem(sampler.batch_size, per_class)),
        *_no_use_for(miner, loss),
        *_chosen_twice(miner, recipe),
        *_given(recipe.problem(loss, dim=dim, batch_size=sampler.batch_size)),
    ]


def _given(problem: str | None) -> list[str]:
    return [] if problem is None else [problem]


def _no_positives(loss: LossOptions, recipe: RecipeOptions, per_class: int | None) -> Iterator[str]:
    comparing = f"loss.name '{loss.name}'" if loss.needs_positives else ""
    if not comparing and _inner(recipe).needs_positives:
        comparing = f"recipe.name '{_inner(recipe).name}'"
    if comparing and per_class is not None and per_class < 2:
        yield (
            f"{comparing} compares images of one class, but sampler.samples_per_class is {per_class}: "
            "it would learn nothing. Use 2 or more"
        )


def _inner(recipe: RecipeOptions) -> RecipeOptions:
    return recipe.base if isinstance(recipe, DistillationOptions) else recipe


def _no_use_for(miner: MinerOptions | None, loss: LossOptions) -> Iterator[str]:
    if miner is None:
        return
    if not loss.takes_tuples:
        able = ", ".join(name for name, options in LOSSES.items() if options.takes_tuples)
        yield (
            f"miner.name '{miner.name}' chooses {miner.gives}, but loss.name '{loss.name}' takes none. "
            f"Remove miner, or use one of {able}"
        )
    elif miner.gives == "triplets" and loss.name != "triplet":
        yield (
            f"miner.name '{miner.name}' chooses triplets, but loss.name '{loss.name}' is a loss of pairs. "
            "Use loss.name 'triplet', or a miner of pairs"
        )


def _chosen_twice(miner: MinerOptions | None, recipe: RecipeOptions) -> Iterator[str]:
    if miner is not None and _inner(recipe).chooses_tuples:
        yield (
            f"miner.name '{miner.name}' and recipe.name '{_inner(recipe).name}' would both choose what is compared. "
            "Remove miner"
        )
