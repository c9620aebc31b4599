"""Run folders with made-up members, for comparisons that need no training."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from sfora_ray.arrays import EmbeddingTable, Float32, l2_normalize
from sfora_ray.comparison import Source
from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.folds import Moments
from sfora_ray.pack.curve import size_curve
from sfora_ray.pack.folding import fold_pack
from sfora_ray.pack.gather import PackBlocks, SplitBlocks, join
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summarize import summarize
from sfora_ray.randomness import numpy_generator
from sfora_ray.retrieval import score
from sfora_ray.training.member_folder import EpochRecord
from tests.tiny import tiny_config

CLASSES, PER_CLASS, DIM = 9, 5, 8
DIGEST = "0123456789abcdef"
Split = Literal["train", "test"]


def table(seed: int, split: Split, *, noise: float, dim: int = DIM, classes: int = CLASSES) -> EmbeddingTable:
    """Noisy rows around class centres; seeds differ in noise and rotation, packs in how much noise there is."""
    labels = np.repeat(np.arange(classes), PER_CLASS)
    labels = labels[labels != 1]
    labels = np.append(labels, 1)  # class 1 is a singleton, which cannot be scored
    centres = numpy_generator(0, split, "centres").normal(size=(classes, dim))
    spread = numpy_generator(seed, split, "noise").normal(size=(len(labels), dim))
    rotation, _ = np.linalg.qr(numpy_generator(seed, "rotation").normal(size=(dim, dim)))
    rows: Float32 = ((centres[labels] + noise * spread) @ rotation).astype(np.float32)
    ids = np.array([f"{split}/{row}.png" for row in range(len(labels))])
    return EmbeddingTable(ids, labels, np.asarray(l2_normalize(rows), dtype=np.float32))


def make_pack(
    folder: Path,
    name: str,
    *overrides: str,
    noise: float = 1.0,
    finished: int | None = None,
    digest: str = DIGEST,
    weights: str = "none",
) -> RunFolder:
    """Write the run folder of a finished pack; of the members that ``overrides`` plan, the first ``finished``."""
    config = tiny_config(Path("photos"), folder, f"name={name}", "evaluation.nmi=false", *overrides)
    run = RunFolder.create(config, weights, digest)
    specs = run.specs()[:finished]
    for spec in specs:
        _write_member(run, spec, noise, config.model.dim)
    write_summary(run, specs, digest)
    return run


def write_summary(run: RunFolder, specs: tuple[MemberSpec, ...], digest: str = DIGEST) -> None:
    """Fold, score and summarise what the members left, as a pack does at its end."""
    config = run.manifest().config
    blocks = PackBlocks(specs, _joined(run, specs, "train"), _joined(run, specs, "test"))
    outcomes = fold_pack(
        blocks, Moments.of(blocks.train.blocks, blocks.train.labels), config.folds, config.evaluation, "cpu"
    )
    run.write_folds(outcomes)
    curve = size_curve(blocks.test, config.evaluation, "cpu")
    run.write_summary(summarize(run, blocks, digest, curve, [outcome.facts for outcome in outcomes]))


def _joined(run: RunFolder, specs: tuple[MemberSpec, ...], split: Split) -> SplitBlocks:
    return join(specs, [run.embeddings(spec, split) for spec in specs], split)


def _write_member(run: RunFolder, spec: MemberSpec, noise: float, dim: int) -> None:
    member, singletons = run.member(spec), spec.config.evaluation.singletons
    for split in ("train", "test"):
        table(spec.seed, split, noise=noise, dim=dim).save(member.embeddings_path(split))
    test = table(spec.seed, "test", noise=noise, dim=dim)
    metrics = score(test.embeddings, test.labels, singletons=singletons, nmi=False).metrics()
    for epoch in (1, 2):
        scores = {"test": metrics} if epoch == 2 else {}
        member.append_epoch(
            EpochRecord(
                epoch=epoch,
                step=4 * epoch,
                time_ms=epoch,
                seconds=1,
                images_per_second=1,
                loss={"total": noise + spec.seed / epoch},
                lr={},
                metrics=scores,
            )
        )
    member.write_result(
        MemberResult(id=spec.id, seed=spec.seed, status="finished", metrics=metrics, epochs=2, best_epoch=2)
    )


def source(folder: Path, name: str, *overrides: str, noise: float = 1.0) -> Source:
    """Return a finished pack, ready to be compared."""
    return Source.of_folder(make_pack(folder, name, *overrides, noise=noise))


def without_folder(pack: Source) -> Source:
    """Return the pack as a tracker knows it: records alone."""
    return Source("0" * 32, None, pack.manifest, pack.summary)
