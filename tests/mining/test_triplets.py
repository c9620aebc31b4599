from __future__ import annotations

import pytest
import torch
from pytorch_metric_learning.miners import BatchHardMiner
from torch import Tensor

from sfora_ray.losses import TripletOptions
from sfora_ray.mining import MINERS, BatchHardOptions, MinerOptions, SemiHardOptions
from sfora_ray.randomness import torch_generator
from sfora_ray.tuples import Pairs, Triplets, pairs_within
from tests.losses.reference import assert_close, load_case, tensor, unit
from tests.mining.rows import LABELS, rows_of


def mined(options: MinerOptions, rows: Tensor, labels: Tensor, candidates: Pairs | None = None) -> Triplets:
    triplets = options.build()(rows, labels, candidates)
    assert isinstance(triplets, Triplets)
    return triplets


def as_set(triplets: Triplets) -> set[tuple[int, int, int]]:
    listed = list(zip(triplets.anchors.tolist(), triplets.positives.tolist(), triplets.negatives.tolist(), strict=True))
    assert len(set(listed)) == len(listed)
    return set(listed)


@pytest.mark.parametrize("name", ["c0_semihard", "c1_semihard", "c2_semihard"])
def test_semi_hard_equals_the_reference_with_its_loss(name: str) -> None:
    case = load_case("pml_triplet", name)
    rows, labels = tensor(case, "in/X", grad=True), tensor(case, "in/labels")
    margin = float(case["hp/margin"])
    triplets = mined(SemiHardOptions(margin=margin), rows, labels)
    assert as_set(triplets) == as_set(Triplets(*(tensor(case, f"out/mined_{key}") for key in ("a1", "p", "a2"))))
    objective = TripletOptions(margin=margin).build(dim=4, num_classes=9, generator=torch_generator(0))
    loss = objective.compare(rows, rows, triplets)
    torch.autograd.backward(loss)
    assert_close(loss, case["out/loss"])
    assert rows.grad is not None
    assert_close(rows.grad, case["out/grad_X"])


def slow_triplets(rows: Tensor, pairs: Pairs) -> dict[tuple[int, int, int], tuple[float, float]]:
    """Return each candidate triplet's distances to its positive and to its negative."""
    unit_rows = [row / row.norm() for row in rows]
    positive = zip(pairs.anchors.tolist(), pairs.positives.tolist(), strict=True)
    negative = list(zip(pairs.negative_anchors.tolist(), pairs.negatives.tolist(), strict=True))
    return {
        (a, p, n): (float((unit_rows[a] - unit_rows[p]).norm()), float((unit_rows[a] - unit_rows[n]).norm()))
        for a, p in positive
        for other, n in negative
        if a == other
    }


def candidates_of(seed: int) -> Pairs:
    pairs = pairs_within(LABELS)
    positive = torch.randperm(len(pairs.anchors), generator=torch_generator(seed))[:12]
    negative = torch.randperm(len(pairs.negatives), generator=torch_generator(seed))[:20]
    return Pairs(
        pairs.anchors[positive],
        pairs.positives[positive],
        pairs.negative_anchors[negative],
        pairs.negatives[negative],
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("chosen", [False, True])
def test_miners_equal_slow_loops_with_and_without_candidates(seed: int, chosen: bool) -> None:
    rows, given = rows_of(9, seed), candidates_of(seed) if chosen else None
    table = slow_triplets(rows, given or pairs_within(LABELS))
    semi_hard = {triplet for triplet, (near, far) in table.items() if 0 < far - near <= 0.3}
    assert as_set(mined(SemiHardOptions(margin=0.3), rows, LABELS, given)) == semi_hard
    hardest = {max((t for t in table if t[0] == a), key=lambda t: (table[t][0], -table[t][1])) for a, _, _ in table}
    assert as_set(mined(BatchHardOptions(), rows, LABELS, given)) == hardest


@pytest.mark.parametrize("seed", range(5))
def test_batch_hard_equals_the_library(seed: int) -> None:
    rows = rows_of(24, seed)
    labels = torch.randint(0, 7, (24,), generator=torch_generator(seed))
    assert as_set(mined(BatchHardOptions(), rows, labels)) == as_set(Triplets(*BatchHardMiner()(rows, labels)))


def test_batch_hard_by_hand_with_ties() -> None:
    rows = unit(0, 30, 30, 90, 90)
    triplets = mined(BatchHardOptions(), rows, torch.tensor([0, 0, 0, 1, 1]))
    assert as_set(triplets) == {(0, 1, 3), (1, 0, 3), (2, 0, 3), (3, 4, 1), (4, 3, 1)}


@pytest.mark.parametrize("options", [SemiHardOptions(), BatchHardOptions()])
@pytest.mark.parametrize("labels", [[0, 1, 2, 3], [5, 5, 5, 5], [2]])
def test_no_triplet_where_there_is_none(options: MinerOptions, labels: list[int]) -> None:
    assert as_set(mined(options, rows_of(len(labels), 3), torch.tensor(labels))) == set()


@pytest.mark.parametrize("options", [SemiHardOptions(margin=0.5), BatchHardOptions()])
def test_half_precision_and_autocast_do_not_reach_the_choice(options: MinerOptions) -> None:
    rows = rows_of(9, 4).bfloat16().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        triplets = mined(options, rows, LABELS)
    assert as_set(triplets) == as_set(mined(options, rows.float(), LABELS))
    assert len(triplets.anchors) > 0


@pytest.mark.parametrize("name", MINERS)
def test_every_miner_knows_its_name_and_gives_what_it_says(name: str) -> None:
    options = MINERS[name].model_validate({})
    kind = {"pairs": Pairs, "triplets": Triplets}[options.gives]
    assert options.name == name
    assert isinstance(options.build()(rows_of(9, 5), LABELS), kind)
    assert not list(options.build().state_dict())
