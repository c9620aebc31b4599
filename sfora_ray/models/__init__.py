"""Models: images to embeddings.

A new backbone is one file with its options and its module, one line in :data:`BACKBONES`, and its place
in the union of :mod:`sfora_ray.models.options`.
"""

from sfora_ray.models.backbone import Backbone, BackboneOptions
from sfora_ray.models.conv4 import Conv4Options
from sfora_ray.models.embedder import Embedder
from sfora_ray.models.options import ModelOptions, ProjectorOptions, build_embedder, weights_identity
from sfora_ray.models.resnet import ResNetOptions
from sfora_ray.models.timm_network import TimmOptions
from sfora_ray.models.weights import install_weights, read_weights

BACKBONES: dict[str, type[BackboneOptions]] = {
    "conv4": Conv4Options,
    "resnet18": ResNetOptions,
    "resnet34": ResNetOptions,
    "resnet50": ResNetOptions,
    "timm": TimmOptions,
}

__all__ = [
    "BACKBONES",
    "Backbone",
    "BackboneOptions",
    "Conv4Options",
    "Embedder",
    "ModelOptions",
    "ProjectorOptions",
    "ResNetOptions",
    "TimmOptions",
    "build_embedder",
    "install_weights",
    "read_weights",
    "weights_identity",
]
