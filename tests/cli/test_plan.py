import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.tiny import CLASSES, tiny_values
from tests.tiny_runs import write_config

CONTRASTIVE = "loss={name: contrastive}"


@pytest.mark.parametrize(
    ("overrides", "objective", "recipe", "sampler"),
    [
        ((), "hist", "distillation", "per_class, 3 classes of 4"),
        (
            (CONTRASTIVE, "miner={name: multi_similarity}", "recipe={name: plain}", "sampler.samples_per_class=6"),
            "contrastive, miner multi_similarity",
            "plain",
            "per_class, 2 classes of 6",
        ),
        (
            (CONTRASTIVE, "recipe.base={name: memory, capacity: 24, warmup_steps: 2}", "sampler={name: random}"),
            "contrastive",
            "memory + distillation",
            "random",
        ),
        (
            (CONTRASTIVE, "recipe={name: cascade}", "sampler={name: mining_weighted, miner: {name: hdc}}"),
            "contrastive",
            "cascade",
            "mining_weighted, miner hdc",
        ),
        (
            (CONTRASTIVE, "data.coarse={}", "sampler={name: hierarchical, samples_per_class: 3}"),
            "contrastive",
            "distillation",
            "hierarchical, 4 classes of 3, of 2 coarse classes",
        ),
        ((CONTRASTIVE, "sampler={name: n_pairs}"), "contrastive", "distillation", "n_pairs, 6 classes of 2"),
    ],
)
def test_a_dry_run_tells_miner_base_recipe_and_batches(
    overrides: tuple[str, ...],
    objective: str,
    recipe: str,
    sampler: str,
    images: Path,
    tmp_path: Path,
    call: Call,
) -> None:
    photos = Path(shutil.copytree(images, tmp_path / "photos"))
    kinds = [f"class{label:02d},{'even' if label % 4 else 'odd'}" for label in range(CLASSES)]
    (photos / "classes.csv").write_text("\n".join(["folder,coarse_class", *kinds]))
    config = write_config(tmp_path / "tiny.yaml", tiny_values(photos, tmp_path))
    ended = call("pack", "run", config, "--dry-run", *overrides, "sampler.batch_size=12")
    assert (ended.code, ended.err) == (0, "")
    told = dict(line.split(maxsplit=1) for line in ended.out.splitlines() if line[:1].isalpha())
    assert (told["objective"], told["recipe"], told["sampler"]) == (objective, recipe, sampler)
