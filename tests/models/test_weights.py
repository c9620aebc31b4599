from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torchvision.models import get_model, get_model_weights

from sfora_ray.errors import ConfigError, WeightsError
from sfora_ray.models import ModelOptions, build_embedder, install_weights, read_weights, weights_identity
from sfora_ray.models.resnet import PUBLISHED, ResNet, ResNetOptions
from sfora_ray.randomness import torch_generator
from tests.shared import SHARED, needs_shared

LITE0 = SHARED / "data/weights/tf_efficientnet_lite0.safetensors"


@pytest.fixture(scope="module")
def resnet18_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "resnet18.pth"
    torch.save(get_model("resnet18", weights=None).state_dict(), path)
    return path


def build(path: Path, name: str = "resnet18") -> ResNet:
    options = ResNetOptions.model_validate({"name": name, "weights": str(path)})
    return options.build(channels=3, generator=torch_generator(0))


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_a_local_file_is_what_the_network_starts_from(suffix: str, resnet18_file: Path, tmp_path: Path) -> None:
    state = torch.load(resnet18_file, weights_only=True)
    path = resnet18_file
    if suffix == ".safetensors":
        path = tmp_path / "resnet18.safetensors"
        save_file(state, path)
    network = build(path)
    for name, value in network.network.state_dict().items():
        assert torch.equal(value, state[name]), name
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    options = ModelOptions(backbone=ResNetOptions(name="resnet18", weights=str(path)))
    assert weights_identity(options) == f"{path} sha256:{digest}"


def test_a_missing_file_is_named_never_replaced_by_chance(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere.pth"
    with pytest.raises(WeightsError, match=r"nowhere\.pth: must be a file, got nothing"):
        build(missing)
    with pytest.raises(WeightsError, match=r"nowhere\.pth"):
        ResNetOptions(weights=str(missing)).weights_identity()


def test_a_folder_is_not_called_nothing(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"must be a file, got a folder\. Give a file in it"):
        read_weights(tmp_path)


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@pytest.mark.parametrize("text", ["hello world", "epoch,loss", "{}", "<html>not found</html>", ""])
def test_a_text_file_is_told_to_be_none_of_weights(text: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"notes{suffix}"
    path.write_text(text)
    with pytest.raises(
        WeightsError, match=r"of tensors, got a file that is none \([A-Z]\w+Error(: .+)?\)\. Copy"
    ) as caught:
        read_weights(path)
    assert "weights_only" not in str(caught.value)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.98])
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_a_truncated_file_is_one_error(suffix: str, share: float, resnet18_file: Path, tmp_path: Path) -> None:
    whole = resnet18_file
    if suffix == ".safetensors":
        whole = tmp_path / "whole.safetensors"
        save_file(torch.load(resnet18_file, weights_only=True), whole)
    torn = tmp_path / f"torn{suffix}"
    content = whole.read_bytes()
    torn.write_bytes(content[: int(share * len(content))])
    with pytest.raises(WeightsError, match=rf"torn{suffix}: must be a whole"):
        build(torn)


def test_another_networks_file_lists_a_few_differences(resnet18_file: Path) -> None:
    with pytest.raises(WeightsError, match=r"instead of|no '|unknown '") as caught:
        build(resnet18_file, "resnet50")
    assert "layer1.0.conv1.weight" in str(caught.value)
    assert "more" in str(caught.value)
    assert len(str(caught.value)) < 600


def test_code_in_a_pickle_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "network.pth"
    torch.save(nn.Linear(2, 2), path)
    with pytest.raises(
        WeightsError, match=r"Unsupported global: GLOBAL torch\.nn\..*save the network's state_dict"
    ) as told:
        read_weights(path)
    assert "weights_only" not in str(told.value)
    torch.save({"epoch": 3}, path)
    with pytest.raises(WeightsError, match="named tensors"):
        read_weights(path)


def test_only_batch_counters_may_be_missing() -> None:
    network = nn.BatchNorm1d(2)
    state = network.state_dict()
    del state["num_batches_tracked"]
    install_weights(network, state, source="here")
    del state["running_mean"]
    with pytest.raises(WeightsError, match=r"weights here: .* no 'running_mean'"):
        install_weights(network, state, source="here")


def test_published_weights_that_cannot_be_fetched_tell_the_way_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def offline(*arguments: object, **options: object) -> None:
        raise OSError("no route")

    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    monkeypatch.setattr(torch.hub, "download_url_to_file", offline)
    options = ResNetOptions(weights="IMAGENET1K_V2")
    with pytest.raises(WeightsError, match=r"resnet50-11ad3fa6\.pth.*local \.pth or \.safetensors"):
        options.build(channels=3, generator=torch_generator(0))


def test_published_weights_in_the_cache_are_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, resnet18_file: Path
) -> None:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    cached = tmp_path / "checkpoints" / "resnet18-f37072fd.pth"
    cached.parent.mkdir()
    cached.write_bytes(resnet18_file.read_bytes())
    options = ResNetOptions(name="resnet18", weights="IMAGENET1K_V1")
    assert options.weights_file() == cached
    digest = hashlib.sha256(cached.read_bytes()).hexdigest()
    assert options.weights_identity() == f"IMAGENET1K_V1 sha256:{digest}"


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_weights_that_can_be_named_are_those_that_can_be_fetched(name: str) -> None:
    assert PUBLISHED[name] == tuple(weights.name for weights in get_model_weights(name))


def test_weights_that_do_not_exist_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="resnet18 has no weights IMAGENET1K_V2; there are IMAGENET1K_V1"):
        ResNetOptions(name="resnet18", weights="IMAGENET1K_V2")


@needs_shared
def test_timm_network_with_a_local_file() -> None:
    options = ModelOptions.model_validate(
        {"backbone": {"name": "timm", "model": "tf_efficientnet_lite0", "weights": str(LITE0)}, "dim": 8}
    )
    first = build_embedder(options, channels=3, generator=torch_generator(0))
    second = build_embedder(options, channels=3, generator=torch_generator(1))
    state = read_weights(LITE0)
    for name, value in first.backbone.state_dict().items():
        expected = state.get(name.removeprefix("network."))
        assert expected is None or torch.equal(value, expected), name
    images = torch.rand(2, 3, 64, 64, generator=torch_generator(2))
    features = first.eval().backbone(images)
    assert features.shape == (2, 1280, 2, 2)
    assert torch.equal(features, second.eval().backbone(images))
    assert float(features.detach().std()) > 0.1
    assert weights_identity(options).endswith(hashlib.sha256(LITE0.read_bytes()).hexdigest())


def test_timm_names_are_corrected() -> None:
    options = ModelOptions.model_validate(
        {"backbone": {"name": "timm", "model": "tf_eficientnet_lite0", "weights": "none"}}
    )
    with pytest.raises(ConfigError, match="Did you mean 'tf_efficientnet_lite0'"):
        build_embedder(options, channels=3, generator=torch_generator(0))
