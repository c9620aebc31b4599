"""What each pack brings into a comparison: its own numbers, curves and names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from sfora_ray.comparison.records import Entry, LearningPoint
from sfora_ray.comparison.source import Contender, Source
from sfora_ray.errors import InputError
from sfora_ray.statistics import t_interval
from sfora_ray.training.member_folder import EpochRecord


def contenders(sources: Sequence[Source], labels: Sequence[str] | None) -> tuple[Contender, ...]:
    """Give each pack a name of its own: the label given, else its name, with its digest where names repeat.

    Raises:
        InputError: labels repeat, or are more or fewer than the packs.
    """
    names = list(labels) if labels is not None else _own_names(sources)
    if len(names) != len(sources) or len(set(names)) != len(names) or not all(names):
        raise InputError(
            f"compare: each of {len(sources)} packs needs a label of its own, got {', '.join(map(repr, names))}. "
            "Give different labels, one a pack."
        )
    return tuple(Contender(name, source) for name, source in zip(names, sources, strict=True))


def _own_names(sources: Sequence[Source]) -> list[str]:
    names = [source.manifest.name for source in sources]
    times = Counter(names)
    longer = [
        name if times[name] == 1 else f"{name}-{source.manifest.digest}"
        for name, source in zip(names, sources, strict=True)
    ]
    return [name if longer.count(name) == 1 else f"{name} #{place}" for place, name in enumerate(longer, start=1)]


def entry_of(contender: Contender) -> Entry:
    """Return a pack's entry.

    Raises:
        InputError: a member's record of epochs is damaged.
    """
    source, summary = contender.source, contender.source.summary
    return Entry(
        label=contender.label,
        source=source.source,
        has_folder=source.folder is not None,
        facts=summary.pack,
        seeds=source.seeds,
        singletons=source.manifest.config.evaluation.singletons,
        single=summary.single,
        curve=summary.pack_curve,
        folds=summary.folds,
        epochs=_learning_curves(source),
    )


def _learning_curves(source: Source) -> dict[str, tuple[LearningPoint, ...]]:
    if source.folder is None:
        return {}
    values: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for spec in source.specs:
        for record in source.folder.member(spec).epochs():
            for key, value in _points_of(record).items():
                values[key][record.epoch].append(value)
    return {
        key: tuple(_point(epoch, found) for epoch, found in sorted(by_epoch.items()))
        for key, by_epoch in sorted(values.items())
    }


def _points_of(record: EpochRecord) -> dict[str, float]:
    scores = {f"{split}.{key}": value for split, metrics in record.metrics.items() for key, value in metrics.items()}
    return scores | ({"train.loss": record.loss["total"]} if "total" in record.loss else {})


def _point(epoch: int, values: Sequence[float]) -> LearningPoint:
    over = t_interval(values)
    return LearningPoint(epoch=epoch, mean=over.mean, ci95=over.ci95, n=over.n)
