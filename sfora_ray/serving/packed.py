"""A pack, or one member, as one model: encoded images in, one unit vector each out.

It is rebuilt from a folder of JSON and safetensors, with this package alone: no pickle, no MLflow.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import safetensors.torch
import torch
from pydantic import field_validator
from torch import Tensor
from torch.nn import functional

from sfora_ray.arrays import Float32
from sfora_ray.data.images import decode_bytes
from sfora_ray.data.transforms import InputOptions
from sfora_ray.errors import DataError, InputError
from sfora_ray.files import write_bytes, write_json
from sfora_ray.folds import FittedFold
from sfora_ray.models import Embedder, ModelOptions, build_embedder
from sfora_ray.options import Options
from sfora_ray.training.precision import autocast_for
from sfora_ray.training.records import read_record


class PackedFacts(Options):
    """``packed.json``: how to put the model together again."""

    format: int = 1
    name: str
    model: ModelOptions
    input: InputOptions
    channels: int
    precision: Literal["fp32", "bf16", "fp16"]
    """Precision of the networks, that in which they were scored."""
    members: tuple[str, ...]
    """Names of the members' weight files, in the fold's order."""
    fold: str | None
    """Name of the fold's file; none for a single member."""
    dim: int
    """Width of the vector that comes out."""

    @field_validator("members", "fold")
    @classmethod
    def _are_file_names(cls, names: tuple[str, ...] | str | None) -> tuple[str, ...] | str | None:
        for name in (names,) if isinstance(names, str) else names or ():
            if not re.fullmatch(r"[a-z0-9-]+\.safetensors", name):
                raise ValueError(f"must be names of files beside packed.json, got '{name}'")
        return names


def write_packed(folder: Path, facts: PackedFacts, weights: Sequence[Path], fold: Path | None) -> None:
    """Write a packed model: its facts, a copy of each member's weights, and of the fold."""
    for name, source in zip(facts.members, weights, strict=True):
        write_bytes(folder / name, source.read_bytes())
    if fold is not None and facts.fold is not None:
        write_bytes(folder / facts.fold, fold.read_bytes())
    write_json(folder / "packed.json", facts.model_dump(mode="json"))


def prove_weights(facts: PackedFacts, weights: Sequence[Path]) -> None:
    """Read each member's weights once.

    Raises:
        InputError: a file is absent, damaged, or of another network.
    """
    for path in weights:
        _embedder(facts, path, torch.device("cpu"))


@dataclass(frozen=True)
class PackedModel:
    """A loaded model.

    Attributes:
        facts: what it is.
        embedders: the members' networks, in eval mode.
        fold: the map that joins them, or None for a single member.
        device: where it computes.
    """

    facts: PackedFacts
    embedders: tuple[Embedder, ...]
    fold: FittedFold | None
    device: torch.device

    @classmethod
    def load(cls, folder: Path, device: str = "cpu") -> PackedModel:
        """Load a folder written by :func:`write_packed`.

        Raises:
            InputError: a file is absent or damaged.
        """
        facts = read_record(PackedFacts, folder / "packed.json")
        embedders = tuple(_embedder(facts, folder / name, torch.device(device)) for name in facts.members)
        fold = None if facts.fold is None else FittedFold.load(folder / facts.fold)
        return cls(facts, embedders, fold, torch.device(device))

    def embed_bytes(self, images: Sequence[bytes], batch_size: int = 64) -> Float32:
        """Return ``(N, dim)`` unit vectors of encoded images (JPEG, PNG and whatever else Pillow reads).

        Raises:
            DataError: an image is no bytes or cannot be decoded; the message has its place in the list.
        """
        for place, content in enumerate(images):
            if not isinstance(content, bytes):
                raise DataError(
                    f"image {place}: must be the bytes of an encoded image, got {type(content).__name__}. "
                    "Read the file with open(path, 'rb').read()."
                )
        transform = self.facts.input.test_transform()
        rows = [np.empty((0, self.facts.dim), np.float32)]
        for start in range(0, len(images), batch_size):
            chosen = images[start : start + batch_size]
            pixels = [
                decode_bytes(content, channels=self.facts.channels, place=f"image {start + place}")
                for place, content in enumerate(chosen)
            ]
            rows.append(self._embed(torch.stack([transform(image) for image in pixels])))
        return np.concatenate(rows)

    def _embed(self, images: Tensor) -> Float32:
        """Return ``(B, dim)`` unit vectors of prepared uint8 images ``(B, C, H, W)``."""
        normalizer = self.facts.input.normalizer(self.facts.channels).to(self.device)
        autocast = autocast_for(self.facts.precision, self.device)
        with torch.inference_mode():
            pixels = normalizer(images.to(self.device))
            with autocast():
                raw = [member.embed(pixels) for member in self.embedders]  # M of (B, D)
            blocks = [functional.normalize(rows.float(), dim=1).cpu().numpy() for rows in raw]
        return blocks[0] if self.fold is None else self.fold.transform(blocks)


def _embedder(facts: PackedFacts, path: Path, device: torch.device) -> Embedder:
    bare = facts.model.model_copy(update={"backbone": facts.model.backbone.without_weights()})
    embedder = build_embedder(bare, channels=facts.channels, generator=torch.Generator())
    try:
        embedder.load_state_dict(safetensors.torch.load(path.read_bytes()))
    except (OSError, RuntimeError, safetensors.SafetensorError) as error:
        raise InputError(f"{path}: not readable as this member's weights ({error}). Get the model again.") from error
    return embedder.to(device).eval()


def png_of(image: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    """Return an image ``(H, W, C)`` as PNG, for input examples."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image).save(buffer, "PNG")
    return buffer.getvalue()
