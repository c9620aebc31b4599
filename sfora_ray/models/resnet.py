"""ResNet-18, -34 and -50 from torchvision, without their classifier.

He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, CVPR 2016.

The published numbers of this field start from ``IMAGENET1K_V1``. The newer ``IMAGENET1K_V2`` classifies
better and embeds worse: cosines of near-identical photos fall. So the weights are always named, and the
digest of the file is recorded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from sfora_ray.errors import WeightsError
from sfora_ray.files import sha256_of
from sfora_ray.models.backbone import Backbone, BackboneOptions, as_three_channels, seeded_by
from sfora_ray.models.weights import existing_file, install_weights, read_weights

ResNetName = Literal["resnet18", "resnet34", "resnet50"]
PUBLISHED = {
    "resnet18": ("IMAGENET1K_V1",),
    "resnet34": ("IMAGENET1K_V1",),
    "resnet50": ("IMAGENET1K_V1", "IMAGENET1K_V2"),
}
"""The weights that torchvision can fetch. It is imported where a network is made, for it takes as long as torch itself,
and every command reads configurations."""


class ResNet(Backbone):
    """A torchvision ResNet up to its last feature map."""

    def __init__(self, name: ResNetName, weights: Path | None, generator: torch.Generator) -> None:
        super().__init__()
        from torchvision.models import get_model

        with seeded_by(generator):
            self.network: nn.Module = get_model(name, weights=None)
        classifier = self.network.get_submodule("fc")
        assert isinstance(classifier, nn.Linear)
        self.num_features = classifier.in_features
        self.network.fc = nn.Identity()
        if weights is not None:
            install_weights(self.network, read_weights(weights), source=str(weights), classifier="fc")

    def forward(self, images: Tensor) -> Tensor:
        """Return the feature map, ``(B, num_features, H / 32, W / 32)``; one channel is shown as three."""
        features = as_three_channels(images)
        for name, layer in self.network.named_children():
            if name in ("avgpool", "fc"):
                break
            features = layer(features)
        return features


class ResNetOptions(BackboneOptions):
    """Options of a ResNet."""

    name: ResNetName = "resnet50"
    weights: str = Field(default="IMAGENET1K_V1", min_length=1)
    """``IMAGENET1K_V1``, ``IMAGENET1K_V2``, a path to a .pth or .safetensors file, or ``none`` (random)."""

    @model_validator(mode="after")
    def _published_weights_exist(self) -> ResNetOptions:
        published = PUBLISHED[self.name]
        if self.weights not in published and any(self.weights in names for names in PUBLISHED.values()):
            raise ValueError(f"{self.name} has no weights {self.weights}; there are {', '.join(published)}")
        return self

    def build(self, *, channels: int, generator: torch.Generator) -> ResNet:
        """Make the network; ``channels`` 1 and 3 are both fed to the three-channel stem."""
        del channels
        return ResNet(self.name, self.weights_file(), generator)

    def weights_file(self) -> Path | None:
        """Return the file of the weights, fetched into torch's cache if need be; ``None`` for a random start.

        Raises:
            WeightsError: there is no such file and it cannot be fetched.
        """
        if self.weights == "none":
            return None
        if self.weights in PUBLISHED[self.name]:
            from torchvision.models import get_model_weights

            return _fetched(get_model_weights(self.name)[self.weights].url, f"{self.name} {self.weights}")
        return existing_file(Path(self.weights))

    def weights_identity(self) -> str:
        """Return the name or path with the file's SHA-256, or ``none``."""
        path = self.weights_file()
        return "none" if path is None else f"{self.weights} sha256:{sha256_of(path)}"


def _fetched(url: str, label: str) -> Path:
    path = Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]
    if path.is_file():
        return path
    hash_prefix = path.stem.rpartition("-")[2]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(url, str(path), hash_prefix=hash_prefix, progress=False)
    except (OSError, RuntimeError) as error:
        raise WeightsError(
            f"weights {label}: must be at {path} or downloadable, got {type(error).__name__}: {error}. "
            f"Put {url} there, or set weights to the path of a local .pth or .safetensors file."
        ) from error
    return path
