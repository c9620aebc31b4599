"""A whole run folder made of records, random embeddings and small painted pictures: no training needed."""

from pathlib import Path

import numpy as np
from PIL import Image

from sfora_ray.arrays import EmbeddingTable, l2_normalize
from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.config.pack import PackConfig
from sfora_ray.data.base import ImageDataset
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summary import CurvePoint, FoldFacts, MemberFacts, PackFacts, Spread, Summary
from sfora_ray.training.member_folder import EpochRecord

HOSTILE = "z<script>alert(1)<&|*x*"
DIM = 8
EPOCHS = 12
SEEDS = (3, 1, 4, 15)

# name, width, fitted on, Recall@1
FOLDS = (
    ("concat", 32, "none", 0.7402),
    ("gpa-transductive", 8, "test", 0.7361),
    ("gpa", 8, "train", 0.7305),
    ("mean", 8, "none", 0.6107),
    ("procrustes", 8, "train", 0.7299),
    ("pca", 8, "train", 0.7190),
    ("uncentred", 8, "train", 0.7213),
    ("pca-transductive", 8, "test", 0.7340),
    ("pca16", 16, "train", 0.7333),
    ("random16", 16, "none", 0.6911),
    ("pca4", 4, "train", 0.6500),
    ("single:pca4", 4, "train", 0.6020),
)


def paint_images(root: Path, *, num_classes: int = 10, images_per_class: int = 5, size: int = 40) -> None:
    """Write one folder a class, each with a colour and pattern of its own; one has a hostile name."""
    generator = np.random.default_rng(0)
    rows, columns = np.mgrid[:size, : size + 10]
    for label in range(num_classes):
        # Odd positions of the sorted names test; the hostile name sorts last.
        folder = root / (HOSTILE if label == num_classes - 1 else f"class {label:02d}")
        folder.mkdir(parents=True)
        colour = generator.uniform(60, 255, 3)
        for image in range(images_per_class):
            wave = 0.6 + 0.4 * np.sin((rows * (label + 1) + columns * (3 + image)) / 9)
            noise = generator.normal(0, 8, (size, size + 10, 3))
            pixels = np.clip(wave[:, :, None] * colour + noise, 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"{image}.png")


def make_config(folder: Path, *, selection: str = "validation") -> PackConfig:
    return PackConfig.model_validate(
        {
            "name": "birds",
            "seeds": list(SEEDS),
            "data": {
                "name": "image_folder",
                "root": str(folder / "images"),
                "split": {"kind": "interleaved"},
            },
            "sampler": {"name": "per_class", "batch_size": 8},
            "model": {"backbone": {"name": "conv4"}, "dim": DIM},
            "loss": {"name": "proxy_anchor"},
            "recipe": {"name": "plain"},
            "selection": {"split": selection},
            "training": {"epochs": EPOCHS},
            "tracking": {"name": "none"},
            "output": str(folder / "runs"),
        }
    )


def make_run(folder: Path, *, failed: tuple[str, ...] = (), selection: str = "validation") -> RunFolder:
    """Make a finished run folder below ``folder``; members named in ``failed`` have failed."""
    paint_images(folder / "images")
    config = make_config(folder, selection=selection)
    dataset = config.data.load(folder / "cache")
    run = RunFolder.create(config, "none")
    for place, spec in enumerate(run.specs()):
        _make_member(run, spec, dataset, place, failed=spec.id in failed, split=selection)
    run.write_summary(make_summary(run, dataset, failed, selection))
    return run


def _make_member(
    run: RunFolder, spec: MemberSpec, dataset: ImageDataset, place: int, *, failed: bool, split: str
) -> None:
    member = run.member(spec)
    generator = np.random.default_rng(spec.seed)
    shown = split if split != "last" else "test"
    for epoch in range(1, EPOCHS + 1 if not failed else 4):
        recall = 0.66 * (1 - np.exp(-epoch / 3)) + 0.02 * float(generator.uniform())
        member.append_epoch(
            EpochRecord(
                epoch=epoch,
                step=epoch * 10,
                time_ms=epoch,
                seconds=1.0,
                images_per_second=100.0,
                loss={
                    "total": 2 * float(np.exp(-epoch / 4)) + 0.1 * float(generator.uniform()),
                    "objective": 1.0,
                },
                lr={"head.decay": 1e-3},
                metrics={shown: {"recall_at_1": recall}} if epoch % 2 == 0 else {},
            )
        )
    status = "failed" if failed else "finished"
    member.write_result(MemberResult.model_validate({"id": spec.id, "seed": spec.seed, "status": status}))
    if failed:
        return
    for split_name, table in (("train", dataset.train), ("test", dataset.test)):
        centres = np.random.default_rng(99).normal(size=(len(table.class_names), DIM))
        rows = centres[table.labels] + 1.5 * generator.normal(size=(len(table), DIM))
        tables = EmbeddingTable(np.array(table.ids), table.labels, l2_normalize(rows.astype(np.float32)))
        tables.save(member.embeddings_path("train" if split_name == "train" else "test"))


def _metrics(recall: float) -> dict[str, float]:
    later = {f"recall_at_{k}": recall + 0.03 * step for step, k in enumerate((2, 4, 8), 1)}
    rest = {"map_at_r": recall - 0.3, "mean_average_precision": recall - 0.2, "r_precision": recall - 0.25}
    return {"recall_at_1": recall, **later, **rest, "nmi": recall + 0.02}


def make_summary(run: RunFolder, dataset: ImageDataset, failed: tuple[str, ...], selection: str) -> Summary:
    members = tuple(_member(spec, place, spec.id in failed) for place, spec in enumerate(run.specs()))
    finished = len(members) - len(failed)
    single = {key: Spread(mean=value, std=0.0043, n=finished, ci95=(value - 0.005, value + 0.005))
              for key, value in _metrics(0.6812).items()}  # fmt: skip
    facts = PackFacts.model_validate(
        {
            "name": "birds",
            "digest": run.manifest().digest,
            "dataset": "image_folder",
            "dataset_digest": dataset.digest,
            "objective": "proxy_anchor",
            "recipe": "plain",
            "backbone": "conv4",
            "weights": "none",
            "dim": DIM,
            "num_members": finished,
            "num_planned": len(members),
            "selection": selection,
            "selection_metric": "recall_at_1",
            "epochs": EPOCHS,
            "train_classes": len(dataset.train.class_names),
            "train_images": len(dataset.train),
            "test_classes": len(dataset.test.class_names),
            "test_images": len(dataset.test),
            "num_queries": len(dataset.test),
            "num_singletons": 0,
            "notes": ["2 classes | with <few> images left out"],
            "versions": {"python": "3.11.0", "torch": "2.14.1"},
        }
    )
    return Summary(pack=facts, members=members, single=single, pack_curve=_curve(finished), folds=_folds(finished))


def _member(spec: MemberSpec, place: int, failed: bool) -> MemberFacts:
    if failed:
        reason = "CUDA out of memory | on <node-7>"
        return MemberFacts(id=spec.id, seed=spec.seed, status="failed", reason=reason)
    return MemberFacts(
        id=spec.id,
        seed=spec.seed,
        status="finished",
        best_epoch=8 + 2 * (place % 2),
        metrics=_metrics(0.6751 + 0.004 * place),
        train_seconds=3725.0,
        images_per_second=812.0,
        warnings=("1 of 8 classes never drawn",) if place == 1 else (),
    )


def _curve(size: int) -> tuple[CurvePoint, ...]:
    points = []
    for members in range(1, size + 1):
        metrics = _metrics(0.7402 - 0.06 / members**1.5 + 0.06 / size**1.5)
        bounds = {key: (value - 0.008 / members, value + 0.006 / members) for key, value in metrics.items()}
        last = members == size
        points.append(
            CurvePoint(size=members, subsets=1 if last else 4, metrics=metrics, ci95=None if last else bounds)
        )
    return tuple(points)


def _folds(num_members: int) -> tuple[FoldFacts, ...]:
    return tuple(
        FoldFacts.model_validate(
            {
                "name": name,
                "dim": dim,
                "fitted_on": fitted_on,
                "metrics": _metrics(recall),
                "retained": recall / 0.7402,
                "ci95": None if name.startswith("single:") else (recall - 0.021, recall + 0.019),
                "num_members": num_members,
            }
        )
        for name, dim, fitted_on, recall in FOLDS
    )
