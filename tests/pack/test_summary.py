"""How a pack's method is called wherever it is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sfora_ray.config.member import MemberResult
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.summarize import summarize
from sfora_ray.pack.summary import Summary
from sfora_ray.pack.told import pack_tags
from tests.pack.blocks import pack_blocks
from tests.tiny import tiny_config


def summary_of(folder: Path, recipe: str) -> Summary:
    run = RunFolder.create(tiny_config(folder, folder, "loss={name: contrastive}", f"recipe={recipe}"), "none")
    for spec in run.specs():
        metrics = {"recall_at_1": 0.5}
        run.member(spec).write_result(MemberResult(id=spec.id, seed=spec.seed, status="finished", metrics=metrics))
    run.write_summary(summarize(run, pack_blocks(2), "abc", (), ()))
    return run.summary()


@pytest.mark.parametrize(
    ("recipe", "name", "method"),
    [
        ("{name: plain}", "plain", "contrastive"),
        ("{name: cascade}", "cascade", "contrastive + cascade"),
        ("{name: distillation}", "distillation", "contrastive + distillation"),
        (
            "{name: distillation, base: {name: memory, capacity: 24}}",
            "memory + distillation",
            "contrastive + memory + distillation",
        ),
        (
            "{name: distillation, base: {name: adversarial}}",
            "adversarial + distillation",
            "contrastive + adversarial + distillation",
        ),
    ],
)
def test_a_method_has_the_recipe_within_distillation(recipe: str, name: str, method: str, tmp_path: Path) -> None:
    summary = summary_of(tmp_path, recipe)
    assert (summary.pack.recipe, summary.pack.method) == (name, method)
    tags = pack_tags(summary)
    assert tags["sfora.recipe"] == name
    assert method in tags["mlflow.note.content"]
    (written,) = (tmp_path / "runs").glob("*/summary.json")
    assert json.loads(written.read_text())["pack"]["recipe"] == name
