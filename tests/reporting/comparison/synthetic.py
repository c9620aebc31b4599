"""A comparison of three packs made by hand: every number in it is known."""

from sfora_ray.comparison.records import (
    Comparison,
    EffectFacts,
    Entry,
    LearningPoint,
    QueryTest,
    SeedTest,
    SizePoint,
)
from sfora_ray.pack.summary import CurvePoint, FoldFacts, PackFacts, Spread

HOSTILE = "z<script>alert(1)<&|*x*"
LABELS = ("hist", "herd", HOSTILE)
DIM = 128


def make_comparison(*, selection: str = "test", labels: tuple[str, ...] = LABELS, seeds: int = 5) -> Comparison:
    """Return a comparison of a baseline with others; the others are 0.7, 1.4, ... points better."""
    entries = tuple(make_entry(label, place, selection, seeds) for place, label in enumerate(labels))
    others = tuple(enumerate(labels[1:], start=1))
    return Comparison(
        entries=entries,
        labels=(f"epochs selected on {selection}", "weights differ: a.pth | b.pth"),
        seeds=tuple(
            seed_test(labels[0], other, metric, place, seeds)
            for metric in ("map_at_r", "recall_at_1", "nmi")
            for place, other in others
        ),
        queries=tuple(
            query_test(labels[0], other, system, place) for place, other in others for system in ("concat", "fold:wccn")
        ),
        sizes=tuple(
            size_point(labels[0], other, metric, size, place, seeds)
            for place, other in others
            for metric in ("recall_at_1", "map_at_r")
            for size in range(1, seeds + 1)
        ),
        omitted=("fold pca of hist against herd: other widths <64 and 128>",),
    )


def make_entry(label: str, place: int, selection: str = "test", seeds: int = 5) -> Entry:
    recall = 0.754 + 0.007 * place
    metrics = {"recall_at_1": recall, "map_at_r": recall - 0.4, "nmi": recall + 0.02}
    return Entry(
        label=label,
        source=f"/runs/{place}",
        has_folder=True,
        facts=make_facts(label, selection, seeds),
        seeds=tuple(range(seeds)),
        singletons="skip",
        single={
            key: Spread(mean=value, std=0.011, n=seeds, ci95=(value - 0.014, value + 0.014))
            for key, value in metrics.items()
        },
        curve=tuple(
            CurvePoint(
                size=size,
                subsets=1 if size == seeds else 5,
                metrics={key: value + 0.05 * (1 - 1 / size) for key, value in metrics.items()},
                ci95=None if size == seeds else {key: (value, value + 0.06) for key, value in metrics.items()},
            )
            for size in range(1, seeds + 1)
        ),
        folds=(
            make_fold("concat", DIM * seeds, "none", recall + 0.05, 1.0, seeds),
            make_fold("gpa-transductive", DIM, "test", recall + 0.06, 1.02, seeds),
            make_fold("wccn", DIM, "train", recall + 0.07, 1.03 - 0.002 * place, seeds),
        ),
        epochs={
            "test.recall_at_1": tuple(
                LearningPoint(epoch=epoch, mean=recall - 0.3 / epoch, ci95=(recall - 0.4 / epoch, recall), n=seeds)
                for epoch in (5, 10, 15, 20)
            ),
            "train.loss": tuple(
                LearningPoint(epoch=epoch, mean=9 / epoch, ci95=(8 / epoch, 10 / epoch), n=seeds)
                for epoch in range(1, 21)
            ),
        },
    )


def make_facts(label: str, selection: str, seeds: int) -> PackFacts:
    return PackFacts.model_validate(
        {
            "name": label,
            "digest": "0123456789",
            "dataset": "omniglot",
            "dataset_digest": "44dce989375ce87d",
            "objective": "hist",
            "recipe": "plain",
            "backbone": "conv4",
            "weights": "/data/weights/net.safetensors sha256:0986093293325365b58094",
            "dim": DIM,
            "num_members": seeds,
            "num_planned": seeds,
            "selection": selection,
            "selection_metric": "recall_at_1",
            "epochs": 20,
            "train_classes": 136,
            "train_images": 2720,
            "test_classes": 106,
            "test_images": 2120,
            "num_queries": 2120,
            "num_singletons": 0,
        }
    )


def make_fold(name: str, dim: int, fitted_on: str, recall: float, retained: float, seeds: int) -> FoldFacts:
    return FoldFacts.model_validate(
        {
            "name": name,
            "dim": dim,
            "fitted_on": fitted_on,
            "metrics": {"recall_at_1": recall},
            "retained": retained,
            "ci95": (recall - 0.03, recall + 0.03),
            "num_members": seeds,
        }
    )


def seed_test(baseline: str, other: str, metric: str, place: int, seeds: int) -> SeedTest:
    change = 0.0069 * place
    return SeedTest(
        baseline=baseline,
        other=other,
        metric=metric,
        test="paired",
        seeds=tuple(range(seeds)),
        baseline_spread=Spread(mean=0.7543, std=0.011, n=seeds, ci95=(0.74, 0.768)),
        other_spread=Spread(mean=0.7543 + change, std=0.012, n=seeds, ci95=(0.746, 0.776)),
        difference=Spread(mean=change, std=0.0041, n=seeds, ci95=(change - 0.0051, change + 0.0051)),
        p_value=0.0625,
        p_holm=0.125,
        exact=True,
        p_smallest=0.0625,
        p_t=0.0201,
        effect=EffectFacts(d_z=1.36, ci95=(0.17, 2.51)),
        seeds_for_difference=5,
        seeds_for_point=4,
    )


def query_test(baseline: str, other: str, system: str, place: int) -> QueryTest:
    change = 0.004 * place
    return QueryTest(
        baseline=baseline,
        other=other,
        system=system,
        size=5,
        dim=5 * DIM if system == "concat" else DIM,
        seeds=(0, 1, 2, 3, 4),
        metric="recall_at_1",
        baseline_mean=0.81,
        other_mean=0.81 + change,
        difference=change,
        ci95=(change - 0.0111, change + 0.0111),
        p_value=0.0004,
        p_holm=0.2345,
        exact=False,
        num_queries=2120,
        num_classes=106,
    )


def size_point(baseline: str, other: str, metric: str, size: int, place: int, seeds: int) -> SizePoint:
    change = 0.0069 * place / size
    return SizePoint(
        baseline=baseline,
        other=other,
        size=size,
        dim=size * DIM,
        metric=metric,
        baseline_mean=0.75 + 0.01 * size,
        other_mean=0.75 + 0.01 * size + change,
        difference=change,
        ci95=None if size == seeds else (change - 0.006, change + 0.005),
        subsets=1 if size == seeds else 5,
        seeds=tuple(range(seeds)),
    )
