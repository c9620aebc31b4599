import math

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torchvision.transforms import v2

from sfora_ray.data.transforms import InputOptions, TrainTransformOptions, augmentation_generator, draw_crop
from sfora_ray.errors import DataError
from tests.data.pictures import noise


@pytest.mark.parametrize("shape", [(40, 60), (61, 37), (50, 50), (20, 90)])
@pytest.mark.parametrize("channels", [1, 3])
def test_test_transform_equals_torchvision(shape: tuple[int, int], channels: int) -> None:
    image = noise(5, *shape, channels)
    reference = v2.Compose([v2.Resize(36, antialias=True), v2.CenterCrop(32)])
    expected = reference(torch.from_numpy(image).permute(2, 0, 1))
    transform = InputOptions.model_validate({"image_size": 32, "test": {"resize": 36}}).test_transform()
    assert torch.equal(transform(image), expected)


def test_default_short_side_is_the_protocols() -> None:
    assert InputOptions().short_side == 256


def test_crops_follow_area_and_ratio() -> None:
    generator = augmentation_generator(0, 0, 0, 0)
    boxes = [draw_crop(generator, 100, 120, (0.16, 1.0), (3 / 4, 4 / 3)) for _ in range(3000)]
    areas = np.array([box.height * box.width / 12000 for box in boxes])
    ratios = np.array([box.width / box.height for box in boxes])
    assert areas.min() > 0.15
    assert areas.max() > 0.9
    assert ratios.min() > 0.73
    assert ratios.max() < 1.36
    # Crops below half the area always fit, so there the log ratio is uniform about 0.
    small = np.log(ratios[areas < 0.5])
    assert abs(small.mean()) < 0.02
    assert small.std() == pytest.approx(2 * math.log(4 / 3) / math.sqrt(12), rel=0.05)
    assert all(0 <= box.top <= 100 - box.height and 0 <= box.left <= 120 - box.width for box in boxes)
    assert {box.top + box.height for box in boxes} >= {100}
    assert {box.left + box.width for box in boxes} >= {120}


def test_crop_of_a_strip_falls_back_to_the_centre() -> None:
    box = draw_crop(augmentation_generator(0, 0, 0, 0), 10, 400, (0.9, 1.0), (3 / 4, 4 / 3))
    assert (box.top, box.left, box.height, box.width) == (0, 193, 10, 13)


def test_one_key_gives_one_image_and_others_give_others() -> None:
    image = noise(1, 60, 60)
    transform = InputOptions(image_size=32).train_transform()
    keys = [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)]
    images = [transform(image, augmentation_generator(*key)) for key in keys]
    again = [transform(image, augmentation_generator(*key)) for key in keys]
    assert all(torch.equal(first, second) for first, second in zip(images, again, strict=True))
    assert len({pixels.numpy().tobytes() for pixels in images}) == len(keys)
    assert all(pixels.shape == (3, 32, 32) and pixels.dtype == torch.uint8 for pixels in images)


def only(**options: object) -> InputOptions:
    train = TrainTransformOptions.model_validate({"crop_scale": None, "horizontal_flip": False, **options})
    return InputOptions.model_validate({"image_size": 16, "test": {"resize": 16}, "train": train})


def test_without_augmentation_training_sees_test_images() -> None:
    options = only()
    image = noise(2, 20, 30)
    augmented = options.train_transform()(image, augmentation_generator(0, 0, 0, 0))
    assert torch.equal(augmented, options.test_transform()(image))


def test_half_of_the_images_are_mirrored() -> None:
    transform = only(horizontal_flip=True).train_transform()
    image = noise(3, 16, 16)
    plain = torch.from_numpy(image).permute(2, 0, 1)
    flipped = 0
    for position in range(400):
        pixels = transform(image, augmentation_generator(0, 0, 0, position))
        mirrored = torch.equal(pixels, plain.flip(-1))
        assert mirrored or torch.equal(pixels, plain)
        flipped += mirrored
    assert 160 < flipped < 240


def test_shift_moves_whole_pixels_and_brings_zeros() -> None:
    transform = only(shift=0.25).train_transform()
    image = np.maximum(noise(4, 16, 16), 1)
    padded = np.pad(image, ((4, 4), (4, 4), (0, 0))).transpose(2, 0, 1)
    windows = {
        padded[:, top : top + 16, left : left + 16].tobytes(): (top, left) for top in range(9) for left in range(9)
    }
    seen = {
        windows[transform(image, augmentation_generator(0, 0, 0, position)).numpy().tobytes()]
        for position in range(600)
    }
    assert {top for top, _ in seen} == {left for _, left in seen} == set(range(9))


@pytest.mark.parametrize("channels", [1, 3])
def test_normalizer_equals_the_formula(channels: int) -> None:
    options = InputOptions(mean=(0.1, 0.2, 0.3)[:channels], std=(0.5, 0.25, 2.0)[:channels])
    images = torch.arange(2 * channels * 4, dtype=torch.uint8).reshape(2, channels, 2, 2)
    output = options.normalizer(channels)(images)
    for channel, (mean, std) in enumerate(zip(options.mean or (), options.std or (), strict=True)):
        expected = (images[:, channel].double() / 255 - mean) / std
        torch.testing.assert_close(output[:, channel].double(), expected, rtol=0, atol=1e-6)
    assert output.dtype == torch.float32
    assert not options.normalizer(channels).state_dict()


def test_defaults_follow_the_channels() -> None:
    grey = torch.tensor([0, 255], dtype=torch.uint8).reshape(1, 1, 1, 2)
    torch.testing.assert_close(InputOptions().normalizer(1)(grey).flatten(), torch.tensor([-1.0, 1.0]))
    with pytest.raises(DataError, match="one number a channel, got 3 and 1 for images of 1"):
        InputOptions(mean=(0.1, 0.2, 0.3)).normalizer(1)


@pytest.mark.parametrize(
    "values",
    [
        {"image_size": 64, "test": {"resize": 60}},
        {"train": {"crop_scale": (0.5, 0.2)}},
        {"train": {"crop_scale": (0.0, 0.2)}},
        {"train": {"crop_ratio": (2.0, 1.0)}},
        {"std": (0.0, 1.0, 1.0)},
        {"train": {"flip": True}},
    ],
)
def test_wrong_options_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        InputOptions.model_validate(values)
