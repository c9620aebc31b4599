"""The records of a sweep folder, format 1: what was tried, how it went epoch by epoch, and how it ended.

They are JSON, written by the trial that they tell of. Whatever a scheduler or a searcher keeps for itself can be made
again from them.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from sfora_ray.config.sweep import SweepConfig
from sfora_ray.options import Options

TrialStatus = Literal["finished", "stopped", "non_finite", "failed"]
"""`stopped`: the scheduler ended it early. `non_finite`: its loss or embeddings. `failed`: its input or software."""


class SweepManifest(Options):
    """``sweep.json``: what is searched, before anything about how it went."""

    format: Literal[1] = 1
    name: str
    digest: str
    """Of the configuration; the number of trials is not in it, so that a sweep can be extended."""
    config: SweepConfig
    versions: dict[str, str]
    weights: str
    """Name and SHA-256 of the weights that members start from."""
    dataset_digest: str = ""
    """Of the rows that members are to see."""
    left_out: tuple[str, ...] = ()
    """Ids of images that could not be read when the sweep started; no member sees them."""

    @model_validator(mode="after")
    def _is_of_its_config(self) -> SweepManifest:
        if self.name != self.config.name:
            raise ValueError(f"name must be that of the configuration, '{self.config.name}', got '{self.name}'")
        return self


class TrialRecord(Options):
    """``trial.json``: written before the trial starts, never changed."""

    number: int
    values: dict[str, Any]
    """Dotted path in the pack's configuration to the value that is tried there."""
    created_ms: int
    """Unix time in milliseconds."""


class Round(Options):
    """One line of ``rounds.jsonl``: an epoch that every member of the trial has been evaluated after."""

    epoch: int
    value: float
    """Mean of the selection's metric over the members."""
    members: dict[str, dict[str, float]] = {}
    """Metrics of each member, by its name such as `seed0-fold0`."""
    time_ms: int
    values: dict[str, Any] = {}
    """What was tried in this epoch, where the scheduler has changed it since the trial began."""


class TrialEnd(Options):
    """``end.json``: the last thing a trial writes; absent while it goes on."""

    status: TrialStatus
    reason: str = ""
    epoch: int
    """Epochs that it was trained for."""
    value: float | None
    """What the configuration is judged by; None where no member was ever evaluated, 0 where it was not finite."""
    time_ms: int
