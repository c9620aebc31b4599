from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sfora_ray.losses import LOSSES, TupleObjective
from sfora_ray.mining import MINERS, Miner
from sfora_ray.parameters import ParameterGroup
from sfora_ray.randomness import torch_generator
from sfora_ray.recipes import ClassifierOptions, Ingredients, Mined, PlainOptions
from sfora_ray.tuples import Pairs, Triplets
from tests.recipes.parts import CLASSES, PairLoss, optimizer_of, rows_as_images, small_batch, small_embedder, take_step

ROWS = torch.randn(9, 4, dtype=torch.float64, generator=torch_generator(5))
LABELS = torch.tensor([3, 0, 0, 4, 3, 0, 1, 4, 1])


class FirstPairs(Miner):
    """One positive and one negative pair."""

    def forward(self, embeddings: Tensor, labels: Tensor, candidates: Pairs | None = None) -> Pairs:  # noqa: ARG002
        return Pairs(*(torch.tensor([row]) for row in (1, 2, 0, 6)))


class Learning(PairLoss):
    """A loss of pairs with something of its own to learn and to tell."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def parameter_groups(self, base_lr: float) -> tuple[ParameterGroup, ...]:
        return (ParameterGroup("scale", (self.scale,), base_lr, decays=False, warms_up=True),)

    def diagnostics(self) -> dict[str, float]:
        return {"scale": self.scale.item()}


def gap(i: int, j: int) -> float:
    return float((ROWS[i] / ROWS[i].norm() - ROWS[j] / ROWS[j].norm()).norm())


def test_only_the_chosen_tuples_count() -> None:
    loss = Mined(PairLoss(), FirstPairs())(ROWS, LABELS)
    assert loss.item() == pytest.approx(gap(1, 2) + max(1 - gap(0, 6), 0), rel=1e-12)


def test_what_the_objective_learns_and_tells_is_passed_on() -> None:
    objective = Learning()
    mined = Mined(objective, FirstPairs())
    assert mined.parameter_groups(0.5) == objective.parameter_groups(0.5)
    assert mined.diagnostics() == {"scale": 1.0}
    assert list(mined.parameters()) == [objective.scale]


def tuple_objective(name: str, dim: int) -> TupleObjective:
    built = LOSSES[name].model_validate({}).build(dim=dim, num_classes=CLASSES, generator=torch_generator(1))
    assert isinstance(built, TupleObjective)
    return built


def test_pair_margin_mining_of_the_contrastive_loss_equals_slow_loops() -> None:
    objective = Mined(tuple_objective("contrastive", 4), MINERS["pair_margin"].model_validate({}).build())
    made = Ingredients(rows_as_images(4), objective, CLASSES, torch_generator(3))
    (turn,) = PlainOptions().build(made).double().turns(ROWS, LABELS)
    pairs = [(i, j) for i in range(9) for j in range(9) if i != j]
    near = [gap(i, j) for i, j in pairs if LABELS[i] == LABELS[j] and gap(i, j) > 0]
    far = [1 - gap(i, j) for i, j in pairs if LABELS[i] != LABELS[j] and gap(i, j) < 1]
    assert turn.terms.total.item() == pytest.approx(sum(near) / len(near) + sum(far) / len(far), rel=1e-10)


@pytest.mark.parametrize("miner", MINERS)
def test_every_miner_trains_a_loss_that_takes_what_it_gives_beside_a_classifier(miner: str) -> None:
    options = MINERS[miner].model_validate({})
    loss = "triplet" if options.gives == "triplets" else "contrastive"
    objective = Mined(tuple_objective(loss, 6), options.build())
    recipe = ClassifierOptions().build(Ingredients(small_embedder(), objective, CLASSES, torch_generator(3)))
    kind = Triplets if options.gives == "triplets" else Pairs
    assert isinstance(objective.miner(recipe.embedder(small_batch()[0]), small_batch()[1]), kind)
    optimizer = optimizer_of(recipe)
    totals = [take_step(recipe, optimizer, *small_batch())[0] for _ in range(5)]
    assert totals[-1] < totals[0]
