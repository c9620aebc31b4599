"""A pack's test rows, and what its systems make of every query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sfora_ray.arrays import Float, Float64, Int64, Strings, l2_normalize
from sfora_ray.comparison.records import CONCAT_SYSTEM, SINGLE_SYSTEM
from sfora_ray.comparison.source import Contender
from sfora_ray.config.pack import EvaluationOptions
from sfora_ray.errors import DataError, InputError, RunFolderError
from sfora_ray.folds import FittedFold
from sfora_ray.pack.gather import SplitBlocks, join
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.retrieval import QueryMetrics, pack_curve, score
from sfora_ray.statistics import Subset

Seeds = tuple[int, ...]
QUERY_METRICS = ("recall_at_1", "map_at_r")


@dataclass(frozen=True)
class QueryValues:
    """What one system makes of every query.

    Attributes:
        rows: ``(Q,)`` row numbers of the queries.
        dim: width of what is searched.
        values: ``(Q,)`` by metric.
    """

    rows: Int64
    dim: int
    values: dict[str, Float64]


@dataclass(frozen=True)
class ScoredPack:
    """The test blocks of a pack's finished members, scored when asked and only once.

    Attributes:
        label: of the pack.
        run: its folder.
        seeds: of the members, in the blocks' order.
        test: their rows.
        evaluation: how to score.
        device: where to score.
    """

    label: str
    run: RunFolder
    seeds: Seeds
    test: SplitBlocks
    evaluation: EvaluationOptions
    device: str
    _known: dict[tuple[str, Seeds], QueryValues] = field(default_factory=dict, compare=False, repr=False)
    _curves: dict[Seeds, dict[Subset, dict[str, float]]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def read(cls, pack: Contender, device: str) -> ScoredPack | None:
        """Read the test rows of a pack's members; None where it has no folder.

        Raises:
            InputError: an embedding table is absent or damaged.
            SforaError: members disagree about the images, or a row is not finite.
        """
        run, specs = pack.source.folder, pack.source.specs
        if run is None:
            return None
        _refuse_lost(pack, specs)
        test = join(specs, [run.embeddings(spec, "test") for spec in specs], "test")
        evaluation = pack.source.manifest.config.evaluation
        return cls(pack.label, run, tuple(spec.seed for spec in specs), test, evaluation, device)

    @property
    def labels(self) -> Int64:
        """Return ``(N,)`` the class of each test row."""
        return self.test.labels

    @property
    def ids(self) -> Strings:
        """Return ``(N,)`` the id of each test row."""
        return self.test.ids

    @property
    def member_dim(self) -> int:
        """Return the width of one member."""
        return int(self.test.blocks[0].shape[1])

    def single(self, seeds: Seeds) -> QueryValues:
        """Return each query's mean over single members."""
        members = [self._kept(SINGLE_SYSTEM, (seed,), self._blocks((seed,))[0]) for seed in seeds]
        means = {key: np.mean([one.values[key] for one in members], axis=0) for key in QUERY_METRICS}
        return QueryValues(members[0].rows, self.member_dim, means)

    def concat(self, seeds: Seeds) -> QueryValues:
        """Return the queries of the concatenation of these members."""
        if (CONCAT_SYSTEM, seeds) not in self._known:
            rows = np.concatenate([l2_normalize(block) for block in self._blocks(seeds)], axis=1)  # (N, M*D)
            self._kept(CONCAT_SYSTEM, seeds, rows)
        return self._known[CONCAT_SYSTEM, seeds]

    def fitted(self, name: str) -> FittedFold:
        """Read a fold's map as it was fitted.

        Raises:
            DataError: it is absent, damaged, or of other members.
        """
        fitted = FittedFold.load(self.run.fold_path(name))
        if (fitted.num_members, fitted.member_dim) != (len(self.seeds), self.member_dim):
            raise DataError(
                f"{self.run.fold_path(name)}: is of other members, got {fitted.num_members} of width "
                f"{fitted.member_dim} for {len(self.seeds)} of width {self.member_dim}. "
                "Fold the pack again with `sfora-ray fold`."
            )
        return fitted

    def folded(self, name: str) -> QueryValues:
        """Return the queries of a fold of all members; raises as :meth:`fitted`."""
        if (name, self.seeds) not in self._known:
            self._kept(name, self.seeds, self.fitted(name).transform(self.test.blocks))
        return self._known[name, self.seeds]

    def curve(self, seeds: Seeds, subsets: Sequence[Subset]) -> dict[Subset, dict[str, float]]:
        """Return the metrics of the concatenation of each subset; a subset names places in ``seeds``."""
        if seeds not in self._curves:
            self._curves[seeds] = pack_curve(
                self._blocks(seeds),
                self.labels,
                subsets,
                singletons=self.evaluation.singletons,
                device=self.device,
            )
        return self._curves[seeds]

    def _blocks(self, seeds: Seeds) -> list[Float]:
        return [self.test.blocks[self.seeds.index(seed)] for seed in seeds]

    def _kept(self, system: str, seeds: Seeds, rows: Float) -> QueryValues:
        if (system, seeds) not in self._known:
            found = score(rows, self.labels, singletons=self.evaluation.singletons, nmi=False, device=self.device)
            self._known[system, seeds] = _values(found.per_query, int(rows.shape[1]))
        return self._known[system, seeds]


def refuse_other_queries(first: ScoredPack, other: ScoredPack) -> None:
    """Refuse packs whose test rows are not the same images of the same classes in the same order.

    Raises:
        InputError: they are not; names both packs and the first row that differs.
    """
    if len(first.ids) != len(other.ids):
        got = f"{len(first.ids)} and {len(other.ids)} rows"
    else:
        differs = np.flatnonzero((first.ids != other.ids) | (first.labels != other.labels))
        if not len(differs):
            return
        row = int(differs[0])
        got = f"{_row(first, row)} and {_row(other, row)} in row {row}"
    raise InputError(
        f"compare: {first.label} and {other.label} were not tested on the same queries, got {got}. "
        "Train one of the packs anew on the other's data."
    )


def _row(pack: ScoredPack, row: int) -> str:
    return f"'{pack.ids[row]}' of class {pack.labels[row]}"


def _refuse_lost(pack: Contender, specs: Sequence[object]) -> None:
    if len(specs) != len(pack.source.seeds):
        raise RunFolderError(
            f"{pack.source.source}: the summary tells of members that the manifest does not plan, got "
            f"{len(pack.source.seeds)} and {len(specs)}. Bring them together with `sfora-ray fold`."
        )


def _values(per_query: QueryMetrics, dim: int) -> QueryValues:
    return QueryValues(per_query.rows, dim, {"recall_at_1": per_query.recall_at_1, "map_at_r": per_query.map_at_r})
