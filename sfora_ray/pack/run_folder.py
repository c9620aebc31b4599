"""The run folder, format 1: everything a pack produced, and the only truth about it."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from sfora_ray.arrays import EmbeddingTable
from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.config.pack import PackConfig, digest_of
from sfora_ray.errors import RunFolderError
from sfora_ray.files import read_json, write_json
from sfora_ray.options import Options
from sfora_ray.pack.folding import FoldOutcome
from sfora_ray.pack.summary import Summary
from sfora_ray.training.member_folder import MemberFolder

_RECORDED = ("sfora-ray", "torch", "torchvision", "numpy", "ray", "mlflow", "faiss-gpu", "faiss-cpu", "timm")


class Manifest(Options):
    """``manifest.json``: what the pack is, before anything about how it went."""

    format: Literal[1] = 1
    name: str
    digest: str
    config: PackConfig
    versions: dict[str, str]
    weights: str
    """Name and SHA-256 of the weights that members start from."""


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of each package that can change a number."""
    versions = {"python": platform.python_version()}
    for package in _RECORDED:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


@dataclass(frozen=True)
class RunFolder:
    """Paths in a run folder and the records that lie there."""

    path: Path

    @classmethod
    def create(cls, config: PackConfig, weights: str) -> RunFolder:
        """Make the folder of a new pack.

        Raises:
            RunFolderError: it exists already; nothing is changed.
        """
        folder = cls(config.output.expanduser() / config.run_name)
        if folder.manifest_path.exists():
            raise RunFolderError(
                f"{folder.path}: this very pack has a run folder already. Continue it with "
                f"`sfora-ray pack resume {folder.path}`, or remove the folder to start anew."
            )
        if folder.path.exists() and any(folder.path.iterdir()):
            raise RunFolderError(
                f"{folder.path}: is not empty and holds no manifest of a pack. Choose another `output`, or remove it."
            )
        manifest = Manifest(
            name=config.name,
            digest=config.digest(),
            config=config,
            versions=package_versions(),
            weights=weights,
        )
        write_json(folder.manifest_path, manifest.model_dump(mode="json"))
        for spec in folder.specs():
            write_json(folder.member(spec).spec_path, spec.model_dump(mode="json"))
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open an existing run folder.

        Raises:
            RunFolderError: there is none, or its manifest does not belong to its config.
        """
        folder = cls(path)
        if not folder.manifest_path.is_file():
            raise RunFolderError(
                f"{path}: no run folder here (no manifest.json). Give the path that `pack run` printed."
            )
        digest = folder.manifest().digest
        # Of the file, not of the config read from it: a later version may know more keys than were written.
        found = digest_of(read_json(folder.manifest_path)["config"])
        if found != digest:
            raise RunFolderError(
                f"{folder.manifest_path}: the configuration has digest {found}, but the folder was made for {digest}. "
                "A changed config needs a run of its own: restore the manifest."
            )
        return folder

    def adopt(self, config: PackConfig) -> None:
        """Take a config that computes the same but says otherwise where results go, what tracks them, who may wait."""
        assert config.digest() == self.manifest().digest, "the folder's name is the digest"
        manifest = self.manifest().model_copy(update={"config": config})
        write_json(self.manifest_path, manifest.model_dump(mode="json"))

    @property
    def manifest_path(self) -> Path:
        """Return the path of ``manifest.json``."""
        return self.path / "manifest.json"

    @property
    def folds_path(self) -> Path:
        """Return the folder of fitted folds."""
        return self.path / "folds"

    @property
    def summary_path(self) -> Path:
        """Return the path of ``summary.json``."""
        return self.path / "summary.json"

    @property
    def report_path(self) -> Path:
        """Return the folder of the report."""
        return self.path / "report"

    def manifest(self) -> Manifest:
        """Read the manifest.

        Raises:
            RunFolderError: it is not one of format 1.
        """
        try:
            return Manifest.model_validate(read_json(self.manifest_path))
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(str(part) for part in problem["loc"])
            raise RunFolderError(
                f"{self.manifest_path}: {place}: {problem['msg']}, got {problem['input']!r}. "
                "The folder was made by another version or changed by hand; restore it."
            ) from None

    def specs(self) -> tuple[MemberSpec, ...]:
        """Return the member plan: one spec per seed, in the config's order."""
        config = self.manifest().config
        return plan_members(config)

    def member(self, spec: MemberSpec) -> MemberFolder:
        """Return the folder of one member."""
        return MemberFolder(self.path / "members" / spec.folder_name)

    def results(self) -> dict[str, MemberResult]:
        """Return the results that lie here, by member id."""
        folders = {spec.id: self.member(spec) for spec in self.specs()}
        found = {identifier: folder.result() for identifier, folder in folders.items()}
        return {identifier: result for identifier, result in found.items() if result is not None}

    def finished(self) -> tuple[MemberSpec, ...]:
        """Return the specs of the members that finished."""
        results = self.results()
        return tuple(spec for spec in self.specs() if spec.id in results and results[spec.id].status == "finished")

    def embeddings(self, spec: MemberSpec, split: Literal["train", "test"]) -> EmbeddingTable:
        """Read one member's embeddings of a split."""
        return EmbeddingTable.load(self.member(spec).embeddings_path(split))

    def dataset_digest(self) -> str:
        """Return the digest of the data that the members saw; empty while none has finished."""
        return next((result.dataset_digest for result in self.results().values() if result.dataset_digest), "")

    def fold_path(self, name: str) -> Path:
        """Return the path of a fold's map."""
        return self.folds_path / f"{name}.safetensors"

    def fold_names(self) -> tuple[str, ...]:
        """Return the names of the folds that were fitted, in alphabetical order."""
        return tuple(sorted(path.stem for path in self.folds_path.glob("*.safetensors")))

    def write_folds(self, outcomes: Iterable[FoldOutcome]) -> None:
        """Write each fold's map and its facts."""
        for outcome in outcomes:
            name = outcome.facts.name
            outcome.fitted.save(self.fold_path(name))
            write_json(self.folds_path / f"{name}.json", outcome.facts.model_dump(mode="json"))

    def write_summary(self, summary: Summary) -> None:
        """Write ``summary.json``."""
        write_json(self.summary_path, summary.model_dump(mode="json"))

    def summary(self) -> Summary:
        """Read ``summary.json``.

        Raises:
            RunFolderError: there is none yet.
        """
        if not self.summary_path.is_file():
            raise RunFolderError(
                f"{self.path}: has no summary.json yet. Finish it with `sfora-ray pack resume {self.path}`."
            )
        return Summary.model_validate(read_json(self.summary_path))


def plan_members(config: PackConfig) -> tuple[MemberSpec, ...]:
    """Return one spec per seed; ids follow the order of ``seeds``."""
    return tuple(MemberSpec(id=f"m{place:02d}", seed=seed, config=config) for place, seed in enumerate(config.seeds))
