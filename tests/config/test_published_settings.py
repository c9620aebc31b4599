"""Settings that somebody published, written down here once more: a shipped file must not drift from them."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import pytest
import torch

from sfora_ray.config.pack import PackConfig, ScheduleOptions
from sfora_ray.parameters import ParameterGroup
from sfora_ray.training.optimizer import build_optimizer
from sfora_ray.training.preflight import MemberPlan
from sfora_ray.training.schedule import rate_factor
from tests.config import shipped


def config_of(name: str) -> PackConfig:
    return shipped.config_of(f"{name}.yaml")


def plan_of(name: str) -> MemberPlan:
    return shipped.plan_of(f"{name}.yaml")


def check(name: str, path: str, expected: object) -> None:
    value: Any = config_of(name).plain()
    for key in path.split("."):
        value = value[key]
    assert value == expected, path


HIST = {
    # name: tau, alpha, rate, decay, rate of distributions, network factor, halved every, epochs, frozen BatchNorm
    "cub/hist": (32, 1.1, 1.2e-4, 5e-5, 0.1, 5, 5, 40, True),
    "cars/hist": (32, 0.9, 1e-4, 1e-4, 0.1, 10, 10, 50, True),
    "sop/hist": (16, 2, 1e-4, 1e-4, 1e-2, 10, 10, 60, False),
}


@pytest.mark.parametrize("name", HIST)
def test_hist_is_its_authors_recipe(name: str) -> None:
    tau, alpha, rate, decay, distributions, factor, every, epochs, frozen = HIST[name]
    config, plan = config_of(name), plan_of(name)
    loss = config.loss.model_dump()
    assert (loss["tau"], loss["alpha"], loss["hgnn_input"], loss["lambda_s"]) == (tau, alpha, "raw", 1)
    assert (config.optimizer.name, config.sampler.name, config.sampler.batch_size) == ("adam", "random", 32)
    assert (config.model.layer_norm, config.model.frozen_batch_norm, config.model.pooling) == (True, frozen, "avg_max")
    groups = {group.name: (group.lr, group.weight_decay) for group in plan.groups}
    assert groups["backbone.decay"] == groups["head.decay"] == pytest.approx((rate, decay))
    assert groups["hist.distributions"] == pytest.approx((distributions, decay))
    assert groups["hist.network.decay"] == pytest.approx((rate * factor, decay))
    # One epoch of warm-up comes before, and the schedule does not count it.
    assert config.training.epochs == epochs + 1
    assert plan.rates == tuple((1 if k == 0 else 2 + every * k, 0.5**k) for k in range(epochs // every))


HARNESS = {
    # name: steps, images of a class, halved every, warm-up, evaluated every, rate of distributions (Proxy Anchor: None)
    "cub/herd": (49, 8, 10, 1, 5, 0.03),
    "cub/herd_document": (49, 4, 10, 1, 60, 0.1),
    "cub/hist_document": (49, 8, 10, 1, 5, 0.03),
    "cub/hist_distill": (49, 8, 10, 1, 5, 0.03),
    "cub/proxy_anchor": (49, 4, 10, 1, 5, None),
    "cub/proxy_anchor_distill": (49, 4, 10, 1, 5, None),
    "cars/herd": (68, 4, 20, 1, 5, 0.05),
    "cars/hist_document": (68, 8, 10, 1, 5, 0.03),
    "cars/hist_distill": (68, 8, 10, 1, 5, 0.03),
    "cars/proxy_anchor": (68, 4, 10, 5, 5, None),
    "cars/proxy_anchor_distill": (68, 4, 10, 5, 5, None),
    "sop/herd": (497, 3, 10, 5, 10, 0.05),
    "sop/hist_distill": (497, 3, 10, 5, 10, 0.05),
    "sop/proxy_anchor": (497, 3, 10, 5, 10, None),
    "sop/proxy_anchor_distill": (497, 3, 10, 5, 10, None),
}


@pytest.mark.parametrize("name", HARNESS)
def test_the_herd_harness(name: str) -> None:
    steps, per_class, every, warmup, evaluate, distributions = HARNESS[name]
    config, plan = config_of(name), plan_of(name)
    assert (config.sampler.batch_size, config.sampler.images_per_class, plan.steps_per_epoch) == (120, per_class, steps)
    assert (config.training.epochs, config.training.evaluate_every) == (60, evaluate)
    assert config.schedule == ScheduleOptions(name="step", every_epochs=every, gamma=0.5, warmup_epochs=warmup)
    assert config.input.train.crop_scale == (0.16, 1.0)
    assert (config.optimizer.name, config.optimizer.clip_value, config.optimizer.clip_norm) == ("adamw", None, None)
    herd = name.split("/")[1].startswith("herd")
    assert config.model.layer_norm is herd
    assert config.recipe.name == ("distillation" if herd or name.endswith("distill") else "plain")
    expected = {
        "backbone.decay": (1e-4, 1e-4, False),
        "backbone.no_decay": (1e-4, 0.0, False),
        "head.decay": (1e-4, 1e-4, True),
        "head.no_decay": (1e-4, 0.0, True),
    }
    if distributions is None:
        expected |= {"proxy_anchor.proxies": (1e-2, 0.0, True)}
    else:
        expected |= {
            "hist.distributions": (distributions, 1e-4, True),
            "hist.network.decay": (1e-3, 1e-4, True),
            "hist.network.no_decay": (1e-3, 0.0, True),
        }
    groups = {group.name: (group.lr, group.weight_decay, group.warms_up) for group in plan.groups}
    assert set(groups) == set(expected)
    for key, (rate, decay, warms_up) in expected.items():
        assert groups[key][:2] == pytest.approx((rate, decay))
        assert groups[key][2] is warms_up


COUNTS = {
    "cub": (100, 5_864, 100, 5_924),
    "cars": (98, 8_054, 98, 8_131),
    "sop": (11_318, 59_551, 11_316, 60_502),
    "inaturalist": (5_003, 250_150, 4_997, 249_850),
}


@pytest.mark.parametrize("folder", COUNTS)
def test_every_class_has_its_proxy_and_its_distribution(folder: str) -> None:
    counts = plan_of(f"{folder}/herd").counts
    assert (counts.train_classes, counts.train_images, counts.test_classes, counts.test_images) == COUNTS[folder]
    own = {
        group.name: group.num_parameters
        for name in ("herd", "proxy_anchor")
        for group in plan_of(f"{folder}/{name}").groups
    }
    assert own["proxy_anchor.proxies"] == COUNTS[folder][0] * 512
    assert own["hist.distributions"] == COUNTS[folder][0] * 512 * 2


@pytest.mark.parametrize("name", [name for name in shipped.PUBLISHED if "herd" in name or "distill" in name])
def test_distillation_is_that_of_herd(name: str) -> None:
    recipe = config_of(name.removesuffix(".yaml")).recipe.model_dump()
    assert (recipe["weight"], recipe["momentum"], recipe["tau"], recipe["teacher"]) == (1, 0.999, 0.1, "ema")


@pytest.mark.parametrize(("name", "every", "steps"), [("cub", 5, 48), ("cars", 10, 67)])
def test_proxy_anchor_is_its_authors_recipe(name: str, every: int, steps: int) -> None:
    name = f"{name}/proxy_anchor_authors"
    config, plan = config_of(name), plan_of(name)
    assert (config.sampler.name, config.sampler.batch_size, plan.steps_per_epoch) == ("random", 120, steps)
    assert config.schedule == ScheduleOptions(name="step", every_epochs=every, gamma=0.5, warmup_epochs=5)
    assert (config.optimizer.name, config.optimizer.clip_value, config.training.epochs) == ("adamw", 10, 60)
    groups = {group.name: (group.lr, group.weight_decay) for group in plan.groups}
    assert groups["proxy_anchor.proxies"] == pytest.approx((1e-2, 1e-4))
    check(
        name,
        "loss",
        {"name": "proxy_anchor", "alpha": 32, "delta": 0.1, "init": "kaiming", "proxy_lr": 1e-2, "proxy_decay": True},
    )


CONTEXTUAL_224 = {
    # batch, rate, epochs, step, gamma, crop, epsilon, lambda of the paper, projector, evaluated every
    "cub": (128, 1.4e-4, 60, 10, 0.3, 0.16, 0.04, 0.95, 2048, 10),
    "cars": (64, 8e-5, 160, 20, 0.5, 0.12, 0.05, 0.8, 2048, 10),
    "sop": (128, 6e-5, 80, 15, 0.3, 0.08, 0.05, 0.8, 512, 5),
}


@pytest.mark.parametrize("folder", CONTEXTUAL_224)
def test_contextual_at_224_is_its_authors_recipe(folder: str) -> None:
    batch, rate, epochs, every, gamma, crop, epsilon, lam, width, evaluate = CONTEXTUAL_224[folder]
    config = config_of(f"{folder}/contextual_224")
    assert (config.sampler.batch_size, config.sampler.images_per_class) == (batch, 4)
    assert config.sampler.name == ("hierarchical" if folder == "sop" else "per_class_exhaustive")
    assert (config.optimizer.name, config.optimizer.lr, config.optimizer.weight_decay) == ("adamw", rate, 1e-4)
    assert config.schedule == ScheduleOptions(name="step", every_epochs=every, gamma=gamma, warmup_epochs=0)
    assert (config.training.epochs, config.training.evaluate_every) == (epochs, evaluate)
    assert (config.model.pooling, config.model.training_dim, config.model.frozen_batch_norm) == ("gem", width, True)
    assert (config.input.image_size, config.input.train.crop_scale) == (224, (crop, 1))
    loss = config.loss.model_dump()
    # The program's lambda weighs the contrast; the paper's weighs the context.
    assert (loss["weighting"], loss["lam"]) == ("program_224", pytest.approx(1 - lam))
    assert (loss["epsilon"], loss["k"], loss["gamma"], loss["target_similarity"]) == (epsilon, 4, 0.1, 0.3)
    assert (loss["positive_margin"], loss["negative_margin"], loss["alpha"]) == (0.75, 0.6, 10)


CONTEXTUAL_256 = {
    # batch, rate of the head, px, steps the program takes in its 80 epochs, pooling
    "cub": (128, 8e-5, 256, 80 * 15, "max"),
    "cars": (128, 1.6e-4, 256, 80 * 30, "max"),
    "sop": (128, 4e-5, 256, 80 * 655, "avg"),
    "inaturalist": (256, 8e-5, 224, 80 * 576, "avg"),
}


@pytest.mark.parametrize("folder", CONTEXTUAL_256)
def test_contextual_at_256_is_its_authors_recipe(folder: str) -> None:
    batch, rate, size, steps, pooling = CONTEXTUAL_256[folder]
    name = f"{folder}/contextual_256"
    config = config_of(name)
    assert (config.sampler.batch_size, config.input.image_size, config.model.pooling) == (batch, size, pooling)
    assert (config.optimizer.name, config.optimizer.head_lr, config.optimizer.lr) == ("adam", rate, rate / 2)
    assert (config.model.layer_norm, config.model.projector) == (pooling == "max", None)
    loss = config.loss.model_dump()
    assert (loss["weighting"], loss["lam"], loss["gamma"], loss["target_similarity"]) == ("program_256", 0.4, 0.1, 0.25)
    per_epoch = plan_of(name).steps_per_epoch
    assert per_epoch * config.training.epochs == pytest.approx(steps, rel=0.05)
    # The rate falls to .3 after 15 of the program's 80 epochs.
    assert per_epoch * config.schedule.every_epochs == pytest.approx(steps * 15 / 80, rel=0.05)
    assert rate_factor(config.schedule, config.schedule.every_epochs + 1, config.training.epochs) == 0.3


PROXY_NCA = {
    # batch, images of a class, width, rate, rate of the proxies, epochs, steps
    "cub": (32, 4, 2048, 4e-3, 400, 40, 183),
    "sop": (192, 3, 512, 2.4e-2, 240, 80, 310),
}


@pytest.mark.parametrize("folder", PROXY_NCA)
def test_proxy_nca_pp_is_its_authors_recipe(folder: str) -> None:
    batch, per_class, width, rate, proxies, epochs, steps = PROXY_NCA[folder]
    name = f"{folder}/proxy_nca_pp"
    config, plan = config_of(name), plan_of(name)
    assert (config.sampler.batch_size, config.sampler.images_per_class, plan.steps_per_epoch) == (
        batch,
        per_class,
        steps,
    )
    assert (config.optimizer.name, config.optimizer.epsilon, config.optimizer.clip_value) == ("adam", 1, 10)
    assert (config.model.pooling, config.model.pooling_k, config.model.layer_norm) == ("k_max", 1, True)
    assert (config.model.dim, config.model.frozen_batch_norm, config.input.image_size) == (width, False, 256)
    assert (config.schedule.warmup_epochs, config.training.epochs) == (5, epochs + 5)
    assert {group.name: (group.lr, group.weight_decay) for group in plan.groups} == {
        **dict.fromkeys(("backbone.decay", "backbone.no_decay", "head.decay", "head.no_decay"), (rate, 0)),
        "proxy_nca_pp.proxies": (proxies, 0),
    }
    check(name, "loss.scale", 9)
    parameters = (torch.nn.Parameter(torch.zeros(1)),)
    groups = [ParameterGroup("all", parameters, lr=rate, decays=True, warms_up=True)]
    assert build_optimizer(config.optimizer, groups, torch.device("cpu")).param_groups[0]["eps"] == 1


@pytest.mark.parametrize(
    ("loss", "rate", "width"),
    [("contrastive", 2e-5, 2048), ("triplet", 8e-5, 512), ("multi_similarity", 1.6e-4, 2048), ("roadmap", 2e-5, 2048)],
)
def test_baselines_of_the_contextual_paper_on_birds(loss: str, rate: float, width: int) -> None:
    config, own = config_of(f"cub/{loss}"), config_of("cub/contextual_224")
    assert (config.loss.name, config.optimizer.lr, config.model.training_dim) == (loss, rate, width)
    assert (config.sampler, config.schedule, config.input) == (own.sampler, own.schedule, own.input)
    assert (config.miner is None) == (loss != "multi_similarity")


@pytest.mark.parametrize("folder", ["cub", "cars", "sop", "inaturalist"])
def test_supap_is_the_contextual_programs_copy(folder: str) -> None:
    """Its line for negatives far ahead is ``rho * lead + 1.44``; what is configured is its value at ``delta``."""
    loss = config_of(f"{folder}/roadmap").loss.model_dump()
    assert (loss["tau"], loss["rho"], loss["delta"], loss["start"]) == (0.01, 100, 0.05, 0.5)
    assert loss["offset"] - loss["rho"] * loss["delta"] == pytest.approx(1.44)
    assert (loss["ap_weight"], loss["calibration_weight"]) == (0.5, 0.5)


def test_cross_batch_memory_is_its_authors_sample() -> None:
    config, plan = config_of("sop/xbm"), plan_of("sop/xbm")
    recipe = config.recipe.model_dump()
    assert (recipe["capacity"], recipe["warmup_steps"], recipe["batch_weight"]) == (55_000, 1_000, 1)
    assert (config.sampler.batch_size, config.sampler.images_per_class) == (64, 4)
    assert (config.optimizer.name, config.optimizer.lr, config.optimizer.weight_decay) == ("adam", 1e-4, 5e-4)
    assert (config.model.pooling, config.model.dim, config.model.frozen_batch_norm) == ("max", 128, False)
    assert (config.input.train.crop_scale, config.input.test.resize) == ((0.2, 1), 256)
    loss = config.loss.model_dump()
    assert (loss["distance"], loss["positive_margin"], loss["negative_margin"]) == ("cosine", 1, 0.5)
    assert plan.steps_per_epoch * config.training.epochs == pytest.approx(35_000, rel=0.02)


def test_a_cascade_keeps_the_shares_of_its_authors() -> None:
    config = config_of("cub/hdc")
    recipe, loss = config.recipe.model_dump(), config.loss.model_dump()
    assert (config.sampler.batch_size, config.sampler.images_per_class) == (100, 10)
    assert (recipe["slices"], config.model.training_dim) == ((128, 128, 128), 384)
    # Each share is of the slice before; of all pairs the program keeps 1, 1/2 and 1/5.
    assert tuple(itertools.accumulate(recipe["fractions"], operator.mul)) == pytest.approx((1, 0.5, 0.2))
    # |a - b|^2 against 1 is 2 - 2 cos against 1.
    assert (loss["distance"], loss["positive_margin"], loss["negative_margin"]) == ("cosine", 1, 0.5)
    own = config_of("cub/contrastive")
    assert (config.optimizer, config.schedule, config.input) == (own.optimizer, own.schedule, own.input)


def test_adversarial_learning_takes_its_authors_steps() -> None:
    config, plan = config_of("cub/daml"), plan_of("cub/daml")
    assert plan.steps_per_epoch * config.training.epochs == pytest.approx(6_000, rel=0.01)
    assert (config.sampler.batch_size, config.model.dim, config.optimizer.name) == (120, 512, "adam")
    groups = {group.name: (group.lr, group.weight_decay, group.num_parameters) for group in plan.groups}
    rate = groups["backbone.decay"][0]
    assert rate == pytest.approx((1e-5 * 1e-4) ** 0.5, rel=0.02)
    assert groups["generator.decay"] == pytest.approx((rate / 10, 1.09e-3, 3 * 2048 * 512 + 512 * 2048))


def test_pairs_are_mined_with_the_contextual_programs_schedule() -> None:
    config, own = config_of("sop/n_pairs"), config_of("sop/contextual_224")
    assert (config.sampler.name, config.sampler.batch_size) == ("n_pairs", own.sampler.batch_size)
    assert config.loss.model_dump() == {"name": "n_pairs", "normalize": False}
    assert (config.input, config.model, config.training) == (own.input, own.model, own.training)
    assert (config.optimizer, config.schedule) == (own.optimizer, own.schedule)
