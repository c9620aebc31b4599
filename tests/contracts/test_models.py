"""What every entry of the backbone table owes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from sfora_ray.models import BACKBONES, Embedder, ModelOptions, build_embedder, weights_identity
from sfora_ray.randomness import torch_generator

RANDOM_START: dict[str, dict[str, Any]] = {
    "conv4": {},
    "resnet18": {"weights": "none"},
    "resnet34": {"weights": "none"},
    "resnet50": {"weights": "none"},
    "timm": {"weights": "none", "model": "tf_efficientnet_lite0"},
}


def options(name: str) -> ModelOptions:
    return ModelOptions.model_validate({"backbone": {"name": name, **RANDOM_START[name]}, "dim": 8})


def build(name: str, seed: int = 0, channels: int = 3) -> Embedder:
    return build_embedder(options(name), channels=channels, generator=torch_generator(seed))


def test_a_backbone_is_in_the_table_and_in_the_union() -> None:
    assert RANDOM_START.keys() == BACKBONES.keys()
    for name, kind in BACKBONES.items():
        assert type(options(name).backbone) is kind
        assert options(name).backbone.model_dump()["name"] == name


@pytest.mark.parametrize("name", BACKBONES)
def test_options_survive_json(name: str) -> None:
    assert ModelOptions.model_validate_json(options(name).model_dump_json()) == options(name)


@pytest.mark.parametrize("name", BACKBONES)
def test_a_random_start_is_never_silent(name: str) -> None:
    assert weights_identity(options(name)) == "none"
    fields = BACKBONES[name].model_fields
    assert "weights" not in fields or fields["weights"].default != "none"


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", BACKBONES)
def test_images_become_rows(name: str, channels: int) -> None:
    embedder = build(name, channels=channels)
    images = torch.rand(3, channels, 64, 64, generator=torch_generator(1))
    features = embedder.backbone(images)
    assert features.shape[:2] == (3, embedder.backbone.num_features)
    assert features.ndim == 4
    rows = embedder(images)
    assert rows.shape == (3, 8)
    assert torch.isfinite(rows).all()


@pytest.mark.parametrize("name", BACKBONES)
def test_its_start_is_named_by_the_generator_alone(name: str) -> None:
    before = torch.get_rng_state()
    first, second, other = build(name, 1), build(name, 1), build(name, 2)
    assert torch.equal(before, torch.get_rng_state())
    triples = zip(first.parameters(), second.parameters(), other.parameters(), strict=True)
    differs = False
    for a, b, c in triples:
        assert torch.equal(a, b)
        differs |= not torch.equal(a, c)
    assert differs
    assert torch.isfinite(torch.cat([parameter.flatten() for parameter in first.parameters()])).all()


@pytest.mark.parametrize("name", BACKBONES)
def test_every_parameter_is_in_exactly_one_group(name: str) -> None:
    embedder = build(name)
    groups = embedder.parameter_groups(1e-4, 1e-3)
    grouped = [id(parameter) for group in groups for parameter in group.parameters]
    assert sorted(grouped) == sorted(id(parameter) for parameter in embedder.parameters())
    plain = {id(p) for group in groups if not group.decays for p in group.parameters}
    for key, parameter in embedder.named_parameters():
        assert (id(parameter) in plain) == (parameter.ndim == 1), key


@pytest.mark.parametrize("name", BACKBONES)
def test_a_copy_is_the_same_network(name: str) -> None:
    embedder = build(name).eval()
    images = torch.rand(2, 3, 64, 64, generator=torch_generator(3))
    twin = copy.deepcopy(embedder)
    other = build(name, 7).eval()
    other.load_state_dict(embedder.state_dict())
    assert torch.equal(twin(images), embedder(images))
    assert torch.equal(other(images), embedder(images))
