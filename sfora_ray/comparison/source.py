"""A finished pack as it is given to a comparison: its records, and its run folder where that is at hand."""

from __future__ import annotations

from dataclasses import dataclass

from sfora_ray.config.member import MemberSpec
from sfora_ray.pack.run_folder import Manifest, RunFolder
from sfora_ray.pack.summary import MemberFacts, Summary


@dataclass(frozen=True)
class Source:
    """What is known of one pack.

    Attributes:
        source: the run folder's path, or the tracker's run id.
        folder: with the embeddings; None where only the records are at hand.
        manifest: what the pack is.
        summary: what it came to.
    """

    source: str
    folder: RunFolder | None
    manifest: Manifest
    summary: Summary

    @classmethod
    def of_folder(cls, run: RunFolder) -> Source:
        """Return the pack of a run folder.

        Raises:
            InputError: it has no summary yet.
        """
        return cls(str(run.path), run, run.manifest(), run.summary())

    @property
    def finished(self) -> tuple[MemberFacts, ...]:
        """Return the members that are in the pack's numbers, in the pack's order."""
        return tuple(member for member in self.summary.members if member.status == "finished")

    @property
    def seeds(self) -> tuple[int, ...]:
        """Return the seeds of the finished members."""
        return tuple(member.seed for member in self.finished)

    @property
    def specs(self) -> tuple[MemberSpec, ...]:
        """Return the specs of the finished members; there are none without a folder."""
        known = {member.id for member in self.finished}
        return () if self.folder is None else tuple(spec for spec in self.folder.specs() if spec.id in known)

    def values(self, metric: str) -> dict[int, float]:
        """Return a metric of each finished member by its seed."""
        return {member.seed: member.metrics[metric] for member in self.finished if metric in member.metrics}


@dataclass(frozen=True)
class Contender:
    """A pack under the name that it has in this comparison."""

    label: str
    source: Source

    @property
    def dim(self) -> int:
        """Return the width of one member."""
        return self.source.summary.pack.dim


def shared_seeds(first: Source, second: Source) -> tuple[int, ...]:
    """Return the seeds that have finished in both packs, in the first one's order."""
    return tuple(seed for seed in first.seeds if seed in second.seeds)


def named(seeds: tuple[int, ...]) -> str:
    """Write seeds in words: ``seed 3``, ``seeds 0, 1, 4``."""
    return f"seed{'s' if len(seeds) != 1 else ''} {', '.join(str(seed) for seed in seeds)}"
