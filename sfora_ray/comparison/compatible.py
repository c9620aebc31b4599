"""Whether packs may stand side by side at all, and what must then be said beside every number.

Refused: other test sets, and other rules for queries without a partner, for then the numbers measure different
things. Said: all that makes a difference less than it seems.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sfora_ray.comparison.source import Contender, shared_seeds
from sfora_ray.errors import InputError
from sfora_ray.statistics import smallest_p_value

_ENOUGH_SEEDS = 6


def refuse_unlike(packs: Sequence[Contender]) -> None:
    """Refuse packs whose numbers do not measure the same.

    Raises:
        InputError: fewer than two packs, another test set, or singletons counted otherwise; names both packs.
    """
    if len(packs) < 2:
        raise InputError(f"compare: needs a baseline and at least one other pack, got {len(packs)}. Name two.")
    first = packs[0]
    for other in packs[1:]:
        _refuse_other_data(first, other)
        _refuse_other_singletons(first, other)


def _refuse_other_data(first: Contender, other: Contender) -> None:
    ours, theirs = first.source.summary.pack, other.source.summary.pack
    sizes = [(facts.test_classes, facts.test_images) for facts in (ours, theirs)]
    if ours.dataset_digest != theirs.dataset_digest or sizes[0] != sizes[1]:
        raise InputError(
            f"compare: {first.label} and {other.label} were not tested on the same images, got {ours.dataset} "
            f"{ours.dataset_digest} ({sizes[0][0]} test classes, {sizes[0][1]} images) and {theirs.dataset} "
            f"{theirs.dataset_digest} ({sizes[1][0]} classes, {sizes[1][1]} images). "
            "Compare packs of one data set, or train one of them anew on the other's."
        )


def _refuse_other_singletons(first: Contender, other: Contender) -> None:
    ours, theirs = (pack.source.manifest.config.evaluation.singletons for pack in (first, other))
    if ours != theirs:
        raise InputError(
            f"compare: {first.label} and {other.label} treat a query whose class has one image differently, got "
            f"evaluation.singletons '{ours}' and '{theirs}'. Set one value in both configs and run them again."
        )


def labels_of(packs: Sequence[Contender]) -> tuple[str, ...]:
    """Return what must be said of these packs, beside every number."""
    return (
        *_selected_on_test(packs),
        *_differing(packs),
        *(line for other in packs[1:] for line in _of_pair(packs[0], other)),
        *_partial(packs),
    )


def _selected_on_test(packs: Sequence[Contender]) -> list[str]:
    chosen = [pack.label for pack in packs if pack.source.summary.pack.selection == "test"]
    if not chosen:
        return []
    return [f"selected on test: the epochs of {_joined(chosen)} are the best on the test classes, which is optimistic"]


_MUST_AGREE: dict[str, Callable[[Contender], object]] = {
    "selection": lambda pack: pack.source.summary.pack.selection,
    "selection metric": lambda pack: pack.source.summary.pack.selection_metric,
    "weights": lambda pack: pack.source.summary.pack.weights or "none",
    "backbone": lambda pack: pack.source.summary.pack.backbone,
    "width of a member": lambda pack: pack.dim,
    "epochs": lambda pack: pack.source.summary.pack.epochs,
    "training images": lambda pack: pack.source.summary.pack.train_images,
    "held-out classes": lambda pack: _held_out(pack),
    "version of torch": lambda pack: pack.source.summary.pack.versions.get("torch", "unknown"),
}


def _differing(packs: Sequence[Contender]) -> list[str]:
    lines = []
    for what, value_of in _MUST_AGREE.items():
        values = {pack.label: str(value_of(pack)) for pack in packs}
        if len(set(values.values())) > 1:
            told = "; ".join(f"{label}: {value}" for label, value in values.items())
            lines.append(f"other {what}: {told}")
    return lines


def _held_out(pack: Contender) -> str:
    selection = pack.source.manifest.config.selection
    if selection.split != "validation":
        return "none"
    values = selection.model_dump(exclude={"split", "metric"}, exclude_none=True)
    return ", ".join(f"{key.removeprefix('validation_')} {value}" for key, value in values.items())


def _of_pair(first: Contender, other: Contender) -> list[str]:
    shared = shared_seeds(first.source, other.source)
    lines = [_standing(first, other, len(shared))] if _sizes_differ(first, other) else []
    if len(shared) < 2:
        return lines
    if len(shared) < _ENOUGH_SEEDS:
        least = smallest_p_value(len(shared))
        lines.append(
            f"few seeds: over the {len(shared)} that {first.label} and {other.label} share, the permutation test "
            f"cannot give a p-value below {least:.4g}; six seeds can fall below .05"
        )
    return lines


def _sizes_differ(first: Contender, other: Contender) -> bool:
    return len(first.source.seeds) != len(other.source.seeds)


def _standing(first: Contender, other: Contender, shared: int) -> str:
    sizes = [_ensemble(pack) for pack in (first, other)]
    like = "single members only" if shared < 2 else f"packs of 1 to {shared} of the seeds that both have"
    return f"{sizes[1]} against {sizes[0]}: {other.label} and {first.label} are compared as {like}"


def _ensemble(pack: Contender) -> str:
    count = len(pack.source.seeds)
    return f"single of width {pack.dim}" if count == 1 else f"ensemble of {count} (width {count} x {pack.dim})"


def _partial(packs: Sequence[Contender]) -> list[str]:
    return [
        f"partial pack: {len(pack.source.seeds)} of {pack.source.summary.pack.num_planned} members of {pack.label} "
        "finished; only they are compared"
        for pack in packs
        if len(pack.source.seeds) < pack.source.summary.pack.num_planned
    ]


def _joined(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{', '.join(labels[:-1])} and {labels[-1]}"
