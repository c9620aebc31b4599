"""Any network of the timm library that yields a feature map, without its classifier."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import ModuleType
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from sfora_ray.errors import ConfigError, WeightsError, did_you_mean
from sfora_ray.files import sha256_of
from sfora_ray.models.backbone import Backbone, BackboneOptions, as_three_channels, seeded_by
from sfora_ray.models.weights import existing_file, install_weights, read_weights


class TimmNetwork(Backbone):
    """A timm network up to the feature map before its pooling."""

    def __init__(self, network: nn.Module, num_features: int) -> None:
        super().__init__()
        self.network = network
        self.num_features = num_features

    def forward(self, images: Tensor) -> Tensor:
        """Return the ``(B, num_features, h, w)`` feature map; one channel is shown as three."""
        features: Tensor = self.network.forward_features(as_three_channels(images))  # type: ignore[operator]
        return features


class TimmOptions(BackboneOptions):
    """Options of a timm network."""

    name: Literal["timm"] = "timm"
    model: str = Field(min_length=1)
    """The network's name in timm, e.g. ``tf_efficientnet_lite0``."""
    weights: str = Field(default="pretrained", min_length=1)
    """``pretrained`` (timm's own, fetched), a path to a .pth or .safetensors file, or ``none`` (random)."""

    def build(self, *, channels: int, generator: torch.Generator) -> TimmNetwork:
        """Make the network; ``channels`` 1 and 3 are both fed to the three-channel stem."""
        del channels
        with seeded_by(generator):
            network = self._create()
        if self.weights not in ("none", "pretrained"):
            path = Path(self.weights)
            classifier = network.pretrained_cfg["classifier"]  # type: ignore[index]
            install_weights(network, read_weights(path), source=str(path), classifier=str(classifier))
        num_features = network.num_features
        assert isinstance(num_features, int)
        return TimmNetwork(network, num_features)

    def weights_identity(self) -> str:
        """Return path or model with the SHA-256 of the file, or of all fetched tensors; or ``none``."""
        if self.weights == "none":
            return "none"
        if self.weights == "pretrained":
            with seeded_by(torch.Generator()):
                return f"timm {self.model} sha256:{_digest(self._create())}"
        return f"{self.weights} sha256:{sha256_of(existing_file(Path(self.weights)))}"

    def _create(self) -> nn.Module:
        timm = _timm()
        if not timm.is_model(self.model):
            raise ConfigError(
                f"backbone timm: model must be one that timm knows, got '{self.model}'."
                f"{did_you_mean(self.model, timm.list_models())} Choose one of timm.list_models()."
            )
        pretrained = self.weights == "pretrained"
        try:
            network: nn.Module = timm.create_model(self.model, pretrained=pretrained, num_classes=0)
        except (OSError, RuntimeError) as error:
            raise WeightsError(
                f"weights of timm {self.model}: must be downloadable, got {type(error).__name__}: {error}. "
                "Set weights to the path of a local .safetensors or .pth file."
            ) from error
        return network


def _timm() -> ModuleType:
    try:
        import timm
    except ImportError as error:
        raise ConfigError(
            "backbone timm: needs the timm package, got none installed. "
            "Install it with `pip install 'sfora-ray[timm]'`."
        ) from error
    module: ModuleType = timm
    return module


def _digest(network: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, value in network.state_dict().items():
        digest.update(name.encode())
        digest.update(value.contiguous().numpy().tobytes())
    return digest.hexdigest()
