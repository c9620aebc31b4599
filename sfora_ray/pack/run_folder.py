"""The run folder, format 1: everything a pack produced, and the only truth about it."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import model_validator

from sfora_ray.arrays import EmbeddingTable
from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.config.pack import PackConfig, digest_of
from sfora_ray.errors import RunFolderError
from sfora_ray.files import read_json, write_json
from sfora_ray.options import Options
from sfora_ray.pack.folding import FoldOutcome
from sfora_ray.pack.lock import LOCK_NAME, is_locked
from sfora_ray.pack.summary import Summary
from sfora_ray.storage import LEDGER_NAME
from sfora_ray.training.home import HERE, Home
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.records import read_record

_RECORDED = ("sfora-ray", "torch", "torchvision", "numpy", "ray", "mlflow", "faiss-gpu", "faiss-cpu", "timm")


class Origin(Options):
    """What a pack that was extended was first run with."""

    seeds: tuple[int, ...]
    epochs: int


class Manifest(Options):
    """``manifest.json``: what the pack is, before anything about how it went."""

    format: Literal[1] = 1
    name: str
    digest: str
    """Of the configuration as first run: it names the folder and the tracker's runs, and an extension keeps both."""
    config: PackConfig
    origin: Origin | None = None
    """Absent while the pack is as it was first run."""
    versions: dict[str, str]
    weights: str
    """Name and SHA-256 of the weights that members start from."""
    dataset_digest: str = ""
    """Of the rows that members are to see; empty in folders of earlier versions."""
    left_out: tuple[str, ...] = ()
    """Ids of images that could not be read when the pack started; no member sees them."""

    @model_validator(mode="after")
    def _is_of_its_config(self) -> Manifest:
        if self.name != self.config.name:
            raise ValueError(f"name must be that of the configuration, '{self.config.name}', got '{self.name}'")
        return self

    def original_config(self) -> PackConfig:
        """Return the configuration as first run."""
        return self.config if self.origin is None else with_extent(self.config, self.origin.seeds, self.origin.epochs)

    def is_finished(self, result: MemberResult | None) -> bool:
        """Return whether a member with this result needs no training: it finished, and with all epochs of today.

        A result without a number of epochs was written by a version that knew no extension.
        """
        if result is None or result.status != "finished":
            return False
        return (result.epochs or self.original_config().training.epochs) >= self.config.training.epochs


def with_extent(config: PackConfig, seeds: tuple[int, ...], epochs: int) -> PackConfig:
    """Return the configuration with other seeds and epochs; nothing is checked."""
    training = config.training.model_copy(update={"epochs": epochs})
    return config.model_copy(update={"seeds": seeds, "training": training})


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
    home: Home = field(default=HERE, compare=False)

    @classmethod
    def create(
        cls,
        config: PackConfig,
        weights: str,
        dataset_digest: str = "",
        home: Home = HERE,
        left_out: tuple[str, ...] = (),
    ) -> RunFolder:
        """Make the folder of a new pack.

        Raises:
            RunFolderError: it exists already; nothing is changed.
        """
        folder = cls(cls.of(config).path, home)
        folder.refuse_taken()
        manifest = Manifest(
            name=config.name,
            digest=config.digest(),
            config=config,
            versions=package_versions(),
            weights=weights,
            dataset_digest=dataset_digest,
            left_out=left_out,
        )
        write_json(folder.manifest_path, manifest.model_dump(mode="json"))
        folder.renew_specs()
        return folder

    @classmethod
    def of(cls, config: PackConfig) -> RunFolder:
        """Return the folder that a new pack with this configuration would have, or its working copy."""
        return cls(config.output_folder / config.run_name)

    def is_written(self) -> bool:
        """Return whether some process, perhaps this one, writes the run now."""
        return is_locked(self.path) or self.home.is_written()

    def refuse_taken(self) -> None:
        """Refuse the folder for a new pack if anything but a lock lies there; raises ``RunFolderError``."""
        if self.manifest_path.exists():
            raise RunFolderError(
                f"{self.path}: this very pack has a run folder already. Continue it with "
                f"`sfora-ray pack resume {self.path}`, or remove the folder to start anew."
            )
        if self.path.exists() and any(entry.name not in (LOCK_NAME, LEDGER_NAME) for entry in self.path.iterdir()):
            raise RunFolderError(
                f"{self.path}: is not empty and holds no manifest of a pack. Choose another `output`, or remove it."
            )

    @classmethod
    def open(cls, path: Path, home: Home = HERE) -> RunFolder:
        """Open an existing run folder.

        Raises:
            RunFolderError: there is none, or its manifest does not belong to its config.
        """
        folder = cls(path, home)
        if not folder.manifest_path.is_file():
            raise RunFolderError(
                f"{path}: no run folder here (no manifest.json). Give the path that `pack run` printed."
            )
        digest = folder.manifest().digest
        # Of the file, not of the config read from it: a later version may know more keys than were written.
        found = digest_of(_as_first_run(read_json(folder.manifest_path)))
        if found != digest:
            raise RunFolderError(
                f"{folder.manifest_path}: the configuration has digest {found}, but the folder was made for {digest}. "
                "A changed config needs a run of its own: restore the manifest."
            )
        return folder

    def adopt(self, config: PackConfig) -> None:
        """Take a config that computes the same but says otherwise where results go, what tracks them, who may wait.

        What an extension has added stays.
        """
        manifest = self.manifest()
        assert config.digest() == manifest.digest, "the folder's name is the digest"
        self._write(manifest, with_extent(config, manifest.config.seeds, manifest.config.training.epochs))

    def extend(self, config: PackConfig) -> None:
        """Take a config with more seeds or epochs; what the pack was first run with is kept."""
        manifest = self.manifest()
        first = manifest.config
        origin = manifest.origin or Origin(seeds=first.seeds, epochs=first.training.epochs)
        self._write(manifest.model_copy(update={"origin": origin}), config)
        self.renew_specs()

    def renew_specs(self) -> None:
        """Write each ``spec.json`` that is absent or not of today's config."""
        for spec in self.specs():
            path, plain = self.member(spec).spec_path, spec.model_dump(mode="json")
            if not path.is_file() or read_json(path) != plain:
                write_json(path, plain)

    def _write(self, manifest: Manifest, config: PackConfig) -> None:
        write_json(self.manifest_path, manifest.model_copy(update={"config": config}).model_dump(mode="json"))

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
            InputError: it is not one of format 1.
        """
        return read_record(Manifest, self.manifest_path)

    def specs(self) -> tuple[MemberSpec, ...]:
        """Return the member plan: one spec per seed, in the config's order."""
        manifest = self.manifest()
        data = {"left_out": manifest.left_out, "dataset_digest": manifest.dataset_digest}
        return tuple(spec.model_copy(update=data) for spec in plan_members(manifest.config))

    def member(self, spec: MemberSpec) -> MemberFolder:
        """Return the folder of one member."""
        return MemberFolder(self.path / "members" / spec.folder_name, self.home)

    def results(self) -> dict[str, MemberResult]:
        """Return the results that lie here, by member id."""
        folders = {spec.id: self.member(spec) for spec in self.specs()}
        found = {identifier: folder.result() for identifier, folder in folders.items()}
        return {identifier: result for identifier, result in found.items() if result is not None}

    def finished(self) -> tuple[MemberSpec, ...]:
        """Return the specs of the members that need no more training."""
        manifest, results = self.manifest(), self.results()
        return tuple(spec for spec in self.specs() if manifest.is_finished(results.get(spec.id)))

    def embeddings(self, spec: MemberSpec, split: Literal["train", "test"]) -> EmbeddingTable:
        """Read one member's embeddings of a split."""
        return EmbeddingTable.load(self.member(spec).embeddings_path(split))

    def dataset_digest(self) -> str:
        """Return the digest of the data that members see; empty while nobody has said it."""
        told = (result.dataset_digest for result in self.results().values())
        return self.manifest().dataset_digest or next(filter(None, told), "")

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
            InputError: there is none yet, or it is not one of format 1.
        """
        if not self.summary_path.is_file():
            raise RunFolderError(
                f"{self.path}: has no summary.json yet. Finish it with `sfora-ray pack resume {self.path}`."
            )
        return read_record(Summary, self.summary_path)


def _as_first_run(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of a manifest's JSON values with the seeds and epochs of its origin."""
    config: dict[str, Any] = manifest["config"]
    origin = manifest.get("origin")
    if origin is None:
        return config
    return {**config, "seeds": origin["seeds"], "training": {**config["training"], "epochs": origin["epochs"]}}


def plan_members(config: PackConfig) -> tuple[MemberSpec, ...]:
    """Return one spec per seed; ids follow the order of ``seeds``."""
    return tuple(MemberSpec(id=f"m{place:02d}", seed=seed, config=config) for place, seed in enumerate(config.seeds))
