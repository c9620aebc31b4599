from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sfora_ray.folds import Moments
from sfora_ray.pack.gather import PackBlocks
from sfora_ray.pack.local import LocalMembers
from sfora_ray.pack.run_folder import RunFolder
from tests.tiny import tiny_config

PATIENCE_SECONDS = 300


@dataclass(frozen=True)
class Trained:
    """Two members that processes of their own have trained."""

    run: RunFolder
    blocks: PackBlocks
    moments: Moments
    states: tuple[dict[str, str], ...]


@pytest.fixture(scope="session")
def trained(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trained]:
    """A tiny pack, one member after the other, gathered."""
    folder = tmp_path_factory.mktemp("trained")
    config = tiny_config(images, folder, "resources.max_concurrent_members=1")
    run = RunFolder.create(config, weights="none")
    members = LocalMembers(run, run.specs())
    try:
        states = tuple(poll_until_done(members))
        blocks = members.gather(run.finished())
        yield Trained(run, blocks, members.moments(blocks), states)
    finally:
        members.stop()


def poll_until_done(members: LocalMembers) -> Iterator[dict[str, str]]:
    """Yield the states of every look until no member is under way."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        states = dict(members.poll())
        yield {key: str(state) for key, state in states.items()}
        if all(state in ("finished", "failed") for state in states.values()):
            return
        time.sleep(0.1)
    raise AssertionError("the members did not end")
