"""What a member is made from: its data set and the weights it starts with."""

from __future__ import annotations

from sfora_ray.config.pack import PackConfig
from sfora_ray.training.starting import starting_weights
from sfora_ray.workflows.checks.finding import Finding


def data_set(config: PackConfig) -> list[Finding]:
    """Load the tables of the data set; images are decoded by `data check`."""
    dataset = config.data.load(config.cache_dir.expanduser())
    splits = "; ".join(
        f"{split} {len(table.class_names)} classes, {len(table):,} images"
        for split, table in (("train", dataset.train), ("test", dataset.test))
    )
    return [Finding("data set", "green", "; ".join([f"{dataset.name}: {splits}", *dataset.notes]))]


def weights(config: PackConfig) -> list[Finding]:
    """Find the file of the start weights and read it once."""
    identity = starting_weights(config)
    start = "a random start, no file needed" if identity == "none" else identity
    return [Finding("weights", "green", f"{config.model.backbone.name}: {start}")]
