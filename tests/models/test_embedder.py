from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from sfora_ray.models import Embedder, ModelOptions, build_embedder
from sfora_ray.models.pooling import POOLINGS, PoolingName
from sfora_ray.randomness import torch_generator


def make(seed: int = 0, channels: int = 1, **changes: Any) -> Embedder:
    options = ModelOptions.model_validate({"backbone": {"name": "conv4"}, "dim": 16, **changes})
    return build_embedder(options, channels=channels, generator=torch_generator(seed))


def images(count: int = 4, side: int = 28, channels: int = 1, seed: int = 5) -> Tensor:
    return torch.rand(count, channels, side, side, generator=torch_generator(seed))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("avg", 2.5), ("max", 4.0), ("avg_max", 6.5), ("gem", (100 / 4) ** (1 / 3))],
)
def test_pooling_of_one_two_three_four(name: PoolingName, expected: float) -> None:
    features = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    assert POOLINGS[name](features).item() == pytest.approx(expected)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_number_of_values_that_the_pooling_does_not_read_is_refused(pooling: str) -> None:
    with pytest.raises(ValidationError, match=rf"got 3 with pooling '{pooling}'"):
        ModelOptions.model_validate({"pooling": pooling, "pooling_k": 3})
    assert ModelOptions.model_validate({"pooling": pooling, "pooling_k": 1}).pooling_k == 1
    assert ModelOptions.model_validate({"pooling": "k_max", "pooling_k": 3}).pooling_k == 3


def test_generalized_mean_survives_half_precision() -> None:
    features = torch.full((1, 1, 2, 2), 100.0, dtype=torch.float16)
    assert POOLINGS["gem"](features).item() == pytest.approx(100, rel=1e-5)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("side", [28, 64])
def test_rows_are_raw_and_of_the_configured_width(pooling: str, side: int) -> None:
    embedder = make(pooling=pooling)
    rows = embedder(images(side=side))
    assert rows.shape == (4, 16)
    assert embedder.training_dim == embedder.dim == 16


def test_layer_norm_has_no_weights_and_centres_every_row() -> None:
    embedder = make(layer_norm=True)
    rows = embedder(images())
    torch.testing.assert_close(rows.mean(dim=1), torch.zeros(4), atol=1e-6, rtol=0)
    assert not list(embedder.norm.parameters())


def test_only_the_losses_see_the_projector() -> None:
    embedder = make(projector={"dim": 40}).eval()
    plain = make().eval()
    assert (embedder.training_dim, embedder.dim) == (40, 16)
    assert embedder(images()).shape == (4, 40)
    assert torch.equal(embedder.embed(images()), plain.embed(images()))
    projection = embedder.get_parameter("projector.weight")
    torch.testing.assert_close(embedder(images()), embedder.embed(images()) @ projection.T)


def test_head_starts_as_published() -> None:
    embedder = make(dim=512)
    assert embedder.head.weight.std().item() == pytest.approx(math.sqrt(2 / 512), rel=0.02)
    assert not embedder.head.bias.any()


@pytest.mark.parametrize("frozen", [True, False])
def test_frozen_statistics_stay_frozen_at_every_train_call(frozen: bool) -> None:
    embedder = make(frozen_batch_norm=frozen)
    start = {name: value.clone() for name, value in embedder.named_buffers()}
    weights = {name: value.detach().clone() for name, value in embedder.named_parameters()}
    optimizer = torch.optim.AdamW(embedder.parameters(), lr=1e-2)
    for epoch in range(3):
        embedder.eval()
        embedder.train()
        embedder(images(seed=epoch)).square().sum().backward()
        optimizer.step()
    same = [torch.equal(value, start[name]) for name, value in embedder.named_buffers()]
    assert all(same) if frozen else not any(same)
    norms = [name for name, module in embedder.named_modules() if isinstance(module, nn.BatchNorm2d)]
    assert len(norms) == 4
    for name in norms:
        assert not torch.equal(embedder.get_parameter(f"{name}.weight"), weights[f"{name}.weight"])


@pytest.mark.parametrize("mode", [True, False])
def test_frozen_embeddings_do_not_depend_on_the_batch(mode: bool) -> None:
    embedder = make(frozen_batch_norm=True).train(mode)
    many = images(64)
    together = embedder.embed(many)
    alone = torch.cat([embedder.embed(many[row : row + 1]) for row in (0, 31, 63)])
    cosines = torch.cosine_similarity(alone, together[[0, 31, 63]])
    assert cosines.min().item() >= 1 - 1e-6


def test_groups_rest_and_warm_up() -> None:
    groups = make(projector={"dim": 8}).parameter_groups(1e-4, 3e-4)
    assert {group.name: (group.lr, group.decays, group.warms_up) for group in groups} == {
        "backbone.decay": (1e-4, True, False),
        "backbone.no_decay": (1e-4, False, False),
        "head.decay": (3e-4, True, True),
        "head.no_decay": (3e-4, False, True),
    }


def test_it_can_be_exported_and_gives_the_same_rows() -> None:
    embedder = make(layer_norm=True).eval()
    batch = {"images": {0: torch.export.Dim("batch", min=1, max=64)}}
    program = torch.export.export(embedder, (images(4),), dynamic_shapes=batch)
    torch.testing.assert_close(program.module()(images(7)), embedder(images(7)))


@pytest.mark.slow
def test_it_can_be_compiled() -> None:
    embedder = make()
    compiled = torch.compile(embedder, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(images()), embedder(images()))


def test_gray_images_are_shown_to_a_colour_network_as_three_equal_channels() -> None:
    backbone = {"name": "resnet18", "weights": "none"}
    embedder = make(backbone=backbone).eval()
    gray = images(2, 32)
    assert torch.equal(embedder(gray), embedder(gray.repeat(1, 3, 1, 1)))
