"""Images and their classes: data sets, the decoded cache, augmentation, loading."""

from __future__ import annotations

from sfora_ray.data.base import DatasetOptions
from sfora_ray.data.cars import CarsOptions
from sfora_ray.data.cub import CubOptions
from sfora_ray.data.glyphs import GlyphsOptions
from sfora_ray.data.image_folder import ImageFolderOptions
from sfora_ray.data.inaturalist import InaturalistOptions
from sfora_ray.data.omniglot import OmniglotOptions
from sfora_ray.data.sop import SopOptions

DATASETS: dict[str, type[DatasetOptions]] = {
    "glyphs": GlyphsOptions,
    "omniglot": OmniglotOptions,
    "image_folder": ImageFolderOptions,
    "cub": CubOptions,
    "cars": CarsOptions,
    "sop": SopOptions,
    "inaturalist": InaturalistOptions,
}
