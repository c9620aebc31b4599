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
    inner = recipe.base if isinstance(recipe, DistillationOptions) else recipe
    inner_place = f"{'recipe' if inner is recipe else 'recipe.base'}.name '{inner.name}'"
    comparing = [f"loss.name '{loss.name}'"] * loss.needs_positives + [inner_place] * inner.needs_positives
    return [
        *_nothing_to_compare(comparing, sampler),
        *_given(loss.batch_problem(sampler.batch_size, sampler.images_per_class)),
        *_no_use_for(miner, loss),
        *_chosen_twice(miner, inner, inner_place),
        *_within("recipe", recipe.problem(loss, dim=dim, batch_size=sampler.batch_size)),
    ]


def _given(problem: str | None) -> list[str]:
    return [] if problem is None else [problem]


def _within(part: str, problem: str | None) -> list[str]:
    return [f"{part}.{problem}" for problem in _given(problem)]


def _nothing_to_compare(comparing: list[str], sampler: SamplerOptions) -> Iterator[str]:
    per_class, most = sampler.images_per_class, sampler.batch_size // 2
    if not comparing or per_class is None:
        return
    if per_class < 2:
        yield (
            f"{comparing[0]} compares images of one class, but sampler.samples_per_class is {per_class}: "
            "it would learn nothing. Use 2 or more"
        )
    elif most < per_class:
        fewer = f", or sampler.samples_per_class to {most} or less"
        yield (
            f"{comparing[0]} compares classes, but a batch of {sampler.batch_size} with {per_class} images of a class "
            f"holds one. Set sampler.batch_size to {2 * per_class} or more"
            f"{fewer if most >= 2 and 'samples_per_class' in type(sampler).model_fields else ''}"
        )


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


def _chosen_twice(miner: MinerOptions | None, inner: RecipeOptions, place: str) -> Iterator[str]:
    if miner is not None and inner.chooses_tuples:
        yield f"miner.name '{miner.name}' and {place} would both choose what is compared. Remove miner"
