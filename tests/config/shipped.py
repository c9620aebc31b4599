"""The shipped packs: where they are, what stands above their first key, what they load to, what they plan."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

import pytest
import torch

from sfora_ray.config.load import load_config
from sfora_ray.config.pack import PackConfig
from sfora_ray.models import Embedder, ModelOptions, build_embedder
from sfora_ray.training import preflight
from sfora_ray.training.preflight import MemberPlan

CONFIGS = Path(__file__).parents[2] / "configs"
PACKS = (path for path in CONFIGS.rglob("*.yaml") if path.parent.name != "search")
SHIPPED = sorted(path.relative_to(CONFIGS).as_posix() for path in PACKS)
PUBLISHED = [name for name in SHIPPED if name.split("/")[0] in ("cub", "cars", "sop", "inaturalist")]
"""Those of the four benchmarks, whose settings somebody has published."""

_networks: dict[str, Embedder] = {}


def opening(name: str) -> str:
    """Return the opening comment of a shipped file as one line."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), (CONFIGS / name).read_text().splitlines())
    return " ".join(line.removeprefix("#").strip() for line in lines)


@cache
def config_of(name: str) -> PackConfig:
    """Return what a shipped file loads to."""
    return load_config(CONFIGS / name)


@cache
def plan_of(name: str) -> MemberPlan:
    """Return the plan of a shipped file, made from published counts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preflight, "build_embedder", _shared_network)
        return preflight.dry_plan(config_of(name))


def _shared_network(options: ModelOptions, *, channels: int, generator: torch.Generator) -> Embedder:
    """Let plans share their networks, which they only look at: a ResNet-50 takes a while to draw."""
    key = f"{options.model_dump_json()} {channels}"
    if key not in _networks:
        _networks[key] = build_embedder(options, channels=channels, generator=generator)
    return _networks[key]
