"""The sweep folder, format 1: the only truth about a sweep.

``sweep.json`` says what is searched. A trial is a folder ``trials/t<number>``: what is tried lies there before it
starts, a line for each evaluated epoch follows, and the end comes last. So whoever finds the folder after a crash knows
which configurations were drawn, how far each came, and which need no more work.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfora_ray.config.sweep import SweepConfig
from sfora_ray.errors import RunFolderError
from sfora_ray.files import append_json_line, write_json
from sfora_ray.pack.lock import LOCK_NAME, is_locked
from sfora_ray.pack.run_folder import package_versions
from sfora_ray.sweep.records import Round, SweepManifest, TrialEnd, TrialRecord
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.records import read_record, read_records

_TRIAL_NAME = re.compile(r"t(\d{3,})")


@dataclass(frozen=True)
class TrialFolder:
    """The folder of one trial: what its process writes and everybody else reads."""

    path: Path

    @property
    def name(self) -> str:
        """Return the trial's name, such as ``t007``."""
        return self.path.name

    @property
    def record_path(self) -> Path:
        """Return the path of ``trial.json``."""
        return self.path / "trial.json"

    @property
    def rounds_path(self) -> Path:
        """Return the path of ``rounds.jsonl``."""
        return self.path / "rounds.jsonl"

    @property
    def end_path(self) -> Path:
        """Return the path of ``end.json``."""
        return self.path / "end.json"

    def record(self) -> TrialRecord:
        """Return what is tried.

        Raises:
            InputError: there is no record, or it is not one of format 1.
        """
        return read_record(TrialRecord, self.record_path)

    def rounds(self) -> list[Round]:
        """Return the evaluated epochs in order; a torn last line is left out.

        A trial that went back, to a checkpoint or to that of another trial, has written some epochs again: then what
        it wrote last stands, and what came after that epoch before is gone.
        """
        standing: list[Round] = []
        for found in read_records(Round, self.rounds_path):
            while standing and standing[-1].epoch >= found.epoch:
                standing.pop()
            standing.append(found)
        return standing

    def append_round(self, of_epoch: Round) -> None:
        """Append one evaluated epoch."""
        append_json_line(self.rounds_path, of_epoch.model_dump(mode="json", exclude_defaults=True))

    def end(self) -> TrialEnd | None:
        """Return how the trial ended, or None while it has not."""
        return read_record(TrialEnd, self.end_path) if self.end_path.is_file() else None

    def write_end(self, end: TrialEnd) -> None:
        """Write how the trial ended: the last thing it does."""
        write_json(self.end_path, end.model_dump(mode="json"))

    def member(self, name: str) -> MemberFolder:
        """Return the folder of one member, such as ``seed0-fold0``."""
        return MemberFolder(self.path / "members" / name)


@dataclass(frozen=True)
class Trial:
    """A trial as it was when it was read."""

    folder: TrialFolder
    record: TrialRecord
    rounds: tuple[Round, ...]
    end: TrialEnd | None

    @property
    def number(self) -> int:
        """Return its number, counted from 0."""
        return self.record.number

    @property
    def name(self) -> str:
        """Return its name, such as ``t007``."""
        return self.folder.name

    @property
    def values(self) -> dict[str, Any]:
        """Return what it tries, by dotted path."""
        return self.record.values


@dataclass(frozen=True)
class SweepFolder:
    """Paths in a sweep folder and the records that lie there."""

    path: Path

    @classmethod
    def of(cls, config: SweepConfig) -> SweepFolder:
        """Return the folder that a new sweep with this configuration would have."""
        return cls(config.folder)

    @classmethod
    def create(
        cls, config: SweepConfig, weights: str, dataset_digest: str = "", left_out: tuple[str, ...] = ()
    ) -> SweepFolder:
        """Make the folder of a new sweep.

        Raises:
            RunFolderError: it exists already; nothing is changed.
        """
        folder = cls.of(config)
        folder.refuse_taken()
        folder._write(
            SweepManifest(
                name=config.name,
                digest=config.digest(),
                config=config,
                versions=package_versions(),
                weights=weights,
                dataset_digest=dataset_digest,
                left_out=left_out,
            )
        )
        return folder

    @classmethod
    def open(cls, path: Path) -> SweepFolder:
        """Open an existing sweep folder.

        Raises:
            RunFolderError: there is none, or its manifest does not belong to its config.
        """
        folder = cls(path)
        if not folder.manifest_path.is_file():
            raise RunFolderError(
                f"{path}: no sweep folder here (no sweep.json). Give the path that `sweep run` printed."
            )
        manifest = folder.manifest()
        if manifest.config.digest() != manifest.digest:
            raise RunFolderError(
                f"{folder.manifest_path}: the configuration has digest {manifest.config.digest()}, but the folder was "
                f"made for {manifest.digest}. A changed config needs a sweep of its own: restore the manifest."
            )
        return folder

    def refuse_taken(self) -> None:
        """Refuse the folder for a new sweep if anything but a lock lies there; raises ``RunFolderError``."""
        if self.manifest_path.exists():
            raise RunFolderError(
                f"{self.path}: this very sweep has a folder already. Continue it with "
                f"`sfora-ray sweep resume {self.path}`, or remove the folder to start anew."
            )
        if self.path.exists() and any(entry.name != LOCK_NAME for entry in self.path.iterdir()):
            raise RunFolderError(
                f"{self.path}: is not empty and holds no sweep. Choose another `output` of the pack, or remove it."
            )

    def adopt(self, config: SweepConfig) -> None:
        """Take a config that computes the same but has other trials, places or limits."""
        manifest = self.manifest()
        assert config.digest() == manifest.digest, "the folder's name is the digest"
        self._write(manifest.model_copy(update={"config": config}))

    def _write(self, manifest: SweepManifest) -> None:
        write_json(self.manifest_path, manifest.model_dump(mode="json"))

    @property
    def manifest_path(self) -> Path:
        """Return the path of ``sweep.json``."""
        return self.path / "sweep.json"

    @property
    def trials_path(self) -> Path:
        """Return the folder of the trials."""
        return self.path / "trials"

    @property
    def ranking_path(self) -> Path:
        """Return the path of ``ranking.json``."""
        return self.path / "ranking.json"

    @property
    def best_path(self) -> Path:
        """Return the path of the best configuration as a pack's YAML."""
        return self.path / "best.yaml"

    @property
    def report_path(self) -> Path:
        """Return the folder of the report."""
        return self.path / "report"

    @property
    def confirm_path(self) -> Path:
        """Return the folder of the packs that confirm the best."""
        return self.path / "confirm"

    def manifest(self) -> SweepManifest:
        """Read the manifest.

        Raises:
            InputError: it is not one of format 1.
        """
        return read_record(SweepManifest, self.manifest_path)

    def config(self) -> SweepConfig:
        """Return the sweep's configuration."""
        return self.manifest().config

    def is_written(self) -> bool:
        """Return whether some process, perhaps this one, writes the sweep now."""
        return is_locked(self.path)

    def begin_trial(self, number: int, values: Mapping[str, Any]) -> TrialFolder:
        """Record what a trial is to try; to be called before it starts, again and again if need be.

        Raises:
            RunFolderError: the trial is there already and tries something else.
        """
        folder = self.trial(number)
        if not folder.record_path.is_file():
            record = TrialRecord(number=number, values=dict(values), created_ms=time.time_ns() // 1_000_000)
            write_json(folder.record_path, record.model_dump(mode="json"))
        elif folder.record().values != dict(values):
            raise RunFolderError(
                f"{folder.record_path}: trial {number} tries {folder.record().values}, got {dict(values)}. "
                "The folder was made by another version or changed by hand; restore it."
            )
        return folder

    def trial(self, number: int) -> TrialFolder:
        """Return the folder of a trial, whether it is there or not."""
        return TrialFolder(self.trials_path / f"t{number:03d}")

    def numbers(self) -> tuple[int, ...]:
        """Return the numbers of the trials that have begun, ascending."""
        found = (_TRIAL_NAME.fullmatch(path.parent.name) for path in self.trials_path.glob("t*/trial.json"))
        return tuple(sorted(int(match[1]) for match in found if match))

    def trials(self) -> tuple[Trial, ...]:
        """Return the trials that have begun, by number.

        Raises:
            InputError: a record is damaged.
        """
        return tuple(_read(self.trial(number)) for number in self.numbers())


def _read(folder: TrialFolder) -> Trial:
    end = folder.end()  # before the rounds: what it judges is among them
    return Trial(folder, folder.record(), tuple(folder.rounds()), end)
