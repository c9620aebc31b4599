"""From decoded images to network input: augmentation, test-time cropping, and normalisation.

Parameters of an augmentation are drawn from a stream named by (seed, epoch, step, position in the batch), so
no two images, epochs or members share them, and how many loader processes there are changes nothing. Pixels
stay uint8 until :class:`Normalizer`, which belongs on the device: a quarter of the bytes travel.

The random crop is that of Inception training (Szegedy et al., CVPR 2015, section 6), in the form the field's
programs use: area and aspect ratio are drawn ten times until the crop fits, then the centre is taken. The
lower end of ``crop_scale`` is .16 in this project's Proxy Anchor protocol, .08 in the authors' programs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor, nn

from sfora_ray.arrays import UInt8
from sfora_ray.errors import DataError
from sfora_ray.options import Options
from sfora_ray.randomness import numpy_generator

Fraction = Annotated[float, Field(gt=0, le=1)]
_IMAGENET_MEAN = (0.485, 0.456, 0.406)
_IMAGENET_STD = (0.229, 0.224, 0.225)
_CROP_TRIES = 10


class TrainTransformOptions(Options):
    """Augmentation of training images."""

    crop_scale: tuple[Fraction, Fraction] | None = (0.16, 1.0)
    """Share of the image's area that a random crop keeps; null: resize and crop as for the test."""
    crop_ratio: tuple[float, float] = (3 / 4, 4 / 3)
    """Width over height of a random crop."""
    horizontal_flip: bool = True
    """Mirror half of the images; wrong for letters."""
    shift: float = Field(0.0, ge=0, le=0.5)
    """Largest random shift as a share of the side, uniform in both directions; zeros move in."""

    @model_validator(mode="after")
    def _check_ranges(self) -> TrainTransformOptions:
        for key, limits in (("crop_scale", self.crop_scale), ("crop_ratio", self.crop_ratio)):
            if limits is not None and not 0 < limits[0] <= limits[1]:
                raise ValueError(f"{key} must be (low, high) with 0 < low <= high, got {limits}")
        return self


class TestTransformOptions(Options):
    """Deterministic preparation of test images."""

    __test__ = False

    resize: PositiveInt | None = None
    """Short side before the centre crop; null: image_size x 256 / 224, the protocol's ratio."""


class InputOptions(Options):
    """How images reach the network."""

    image_size: int = Field(224, ge=1, le=4096)
    """Side of the square network input."""
    train: TrainTransformOptions = TrainTransformOptions()
    """Augmentation of training images."""
    test: TestTransformOptions = TestTransformOptions()
    """Preparation of test images."""
    mean: tuple[float, ...] | None = None
    """Mean of each channel on the scale 0..1; null: ImageNet's for RGB, .5 for grey."""
    std: tuple[float, ...] | None = None
    """Standard deviation of each channel on the scale 0..1; null: ImageNet's for RGB, .5 for grey."""
    cache_gigabytes: float = Field(8.0, ge=0)
    """Largest decoded-image cache; data sets that need more are decoded on the fly."""
    unreadable: Literal["error", "skip"] = "error"
    """What becomes of image files that cannot be read. `skip` leaves out those found when the pack starts; a training
    image that becomes unreadable later is replaced by others of its class. What is scored must stay readable."""
    max_unreadable: PositiveInt = 10
    """`skip`: at most so many, at the start in all and later for each member; one more is an error."""

    @model_validator(mode="after")
    def _check_resize(self) -> InputOptions:
        if self.short_side < self.image_size:
            raise ValueError(f"test.resize must be image_size ({self.image_size}) or more, got {self.short_side}")
        if any(value <= 0 for value in self.std or ()):
            raise ValueError(f"std must be positive, got {self.std}")
        return self

    @property
    def tolerated(self) -> int:
        """How many images may be unreadable."""
        return self.max_unreadable if self.unreadable == "skip" else 0

    @property
    def short_side(self) -> int:
        """Short side to which test images are resized."""
        return self.test.resize or round(self.image_size * 256 / 224)

    def train_transform(self) -> TrainTransform:
        """Return the random transform."""
        return TrainTransform(self)

    def test_transform(self) -> TestTransform:
        """Return the deterministic transform."""
        return TestTransform(self.short_side, self.image_size)

    def normalizer(self, channels: int) -> Normalizer:
        """Return the module that makes ``(B, C, H, W)`` uint8 into network input.

        Raises:
            DataError: mean or std have another number of channels.
        """
        mean = self.mean or (_IMAGENET_MEAN if channels == 3 else (0.5,) * channels)
        std = self.std or (_IMAGENET_STD if channels == 3 else (0.5,) * channels)
        if len(mean) != channels or len(std) != channels:
            raise DataError(
                f"input: mean and std need one number a channel, got {len(mean)} and {len(std)} for images "
                f"of {channels}. Give {channels}, or null for the default."
            )
        return Normalizer(mean, std)


class Normalizer(nn.Module):
    """Scale uint8 pixels to 0..1, subtract the mean, divide by the standard deviation."""

    factor: Tensor
    offset: Tensor

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        """Fold both steps into ``x * factor - offset``."""
        super().__init__()
        std64 = torch.tensor(std, dtype=torch.float64)
        factor = 1 / (255 * std64)
        offset = torch.tensor(mean, dtype=torch.float64) / std64
        self.register_buffer("factor", factor.float()[:, None, None], persistent=False)  # (C, 1, 1)
        self.register_buffer("offset", offset.float()[:, None, None], persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return float32 ``(B, C, H, W)`` for uint8 ``(B, C, H, W)``."""
        return images.float().mul_(self.factor).sub_(self.offset)


@dataclass(frozen=True)
class CropBox:
    """A rectangle of an image, in pixels."""

    top: int
    left: int
    height: int
    width: int


@dataclass(frozen=True)
class TrainTransform:
    """The random transform: crop, flip, shift."""

    options: InputOptions

    def __call__(self, image: UInt8, generator: np.random.Generator) -> Tensor:
        """Return uint8 ``(C, H, W)`` of the input size for an image ``(H, W, C)``."""
        size, train = self.options.image_size, self.options.train
        if train.crop_scale is None:
            pixels = self.options.test_transform()(image)
        else:
            box = draw_crop(generator, image.shape[0], image.shape[1], train.crop_scale, train.crop_ratio)
            pixels = _resize(_crop(image, box), size, size)
        if train.horizontal_flip and generator.random() < 0.5:
            pixels = pixels.flip(-1)
        return _shift(pixels, generator, train.shift) if train.shift else pixels


@dataclass(frozen=True)
class TestTransform:
    """Resize the short side, take the centre square: as torchvision's ``Resize`` and ``CenterCrop``."""

    __test__ = False

    short_side: int
    image_size: int

    def __call__(self, image: UInt8) -> Tensor:
        """Return uint8 ``(C, H, W)`` of the input size for an image ``(H, W, C)``."""
        height, width = image.shape[:2]
        short = min(height, width)
        pixels = _resize(image, height * self.short_side // short, width * self.short_side // short)
        size = self.image_size
        top, left = (round((side - size) / 2) for side in pixels.shape[1:])
        return pixels[:, top : top + size, left : left + size]


def augmentation_generator(seed: int, epoch: int, step: int, position: int) -> np.random.Generator:
    """Return the stream that augments the image at ``position`` of a whole batch."""
    return numpy_generator(seed, "augment", epoch, step, position)


def draw_crop(
    generator: np.random.Generator,
    height: int,
    width: int,
    scale: tuple[float, float],
    ratio: tuple[float, float],
) -> CropBox:
    """Draw a crop of uniform area share and log-uniform aspect ratio inside ``height`` x ``width``."""
    low, high = math.log(ratio[0]), math.log(ratio[1])
    for _ in range(_CROP_TRIES):
        area = height * width * generator.uniform(*scale)
        aspect = math.exp(generator.uniform(low, high))
        crop_width, crop_height = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < crop_width <= width and 0 < crop_height <= height:
            top = int(generator.integers(0, height - crop_height + 1))
            left = int(generator.integers(0, width - crop_width + 1))
            return CropBox(top, left, crop_height, crop_width)
    return _centre_crop(height, width, ratio)


def _centre_crop(height: int, width: int, ratio: tuple[float, float]) -> CropBox:
    crop_height, crop_width = height, width
    if width / height < ratio[0]:
        crop_height = max(1, round(width / ratio[0]))
    elif width / height > ratio[1]:
        crop_width = max(1, round(height * ratio[1]))
    return CropBox((height - crop_height) // 2, (width - crop_width) // 2, crop_height, crop_width)


def _crop(image: UInt8, box: CropBox) -> UInt8:
    return image[box.top : box.top + box.height, box.left : box.left + box.width]


def _resize(image: UInt8, height: int, width: int) -> Tensor:
    # Imported here, for it takes as long as torch itself, and every command reads configurations.
    from torchvision.transforms.v2 import functional as vision

    # A copy: torch refuses read-only memory, and the crop of a mapped file is all that is read of it.
    pixels = torch.from_numpy(np.array(image, order="C")).permute(2, 0, 1)  # (C, H, W), channels last in memory
    resized: Tensor = vision.resize(pixels, [height, width], antialias=True)
    return resized


def _shift(pixels: Tensor, generator: np.random.Generator, share: float) -> Tensor:
    _, height, width = pixels.shape
    down, right = (round(float(move)) for move in generator.uniform(-share, share, 2) * (height, width))
    moved = torch.zeros_like(pixels)
    moved[:, max(0, down) : height + min(0, down), max(0, right) : width + min(0, right)] = pixels[
        :, max(0, -down) : height - max(0, down), max(0, -right) : width - max(0, right)
    ]
    return moved
