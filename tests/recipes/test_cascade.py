from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from sfora_ray.losses import HistOptions
from sfora_ray.randomness import torch_generator
from sfora_ray.recipes import CascadeOptions
from sfora_ray.recipes.cascade import Cascade
from tests.recipes.parts import PairLossOptions, given_rows, ingredients, rows_as_images

REFERENCE = Path(__file__).parents[1] / "reference" / "pml_hdc.npz"


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    with np.load(REFERENCE, allow_pickle=False) as arrays:
        return dict(arrays)


def build(dim: int, fractions: tuple[float, ...] = (1.0, 0.5, 0.5), slices: tuple[int, ...] | None = None) -> Cascade:
    options = CascadeOptions(fractions=fractions, slices=slices)
    return options.build(ingredients("pairs", embedder=rows_as_images(dim))).double()


def as_set(first: Any, second: Any) -> set[tuple[int, int]]:
    return set(zip(np.asarray(first).tolist(), np.asarray(second).tolist(), strict=True))


def unordered(pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return pairs without direction: one and its mirror image are as hard, and either may be kept."""
    return sorted(map(sorted, pairs))


@pytest.mark.parametrize("case", ["c0", "c2_odd"])
def test_every_stage_equals_the_reference(case: str, reference: dict[str, Any]) -> None:
    rows = torch.from_numpy(reference[f"{case}/in/X"]).requires_grad_()
    labels = torch.from_numpy(reference[f"{case}/in/labels"])
    fractions, slices = reference[f"{case}/in/fractions"].tolist(), reference[f"{case}/in/sizes"].tolist()
    recipe = build(rows.shape[1], tuple(fractions), tuple(slices))
    for stage, (part, kept) in enumerate(recipe.stages(rows, labels)):
        out = {key: reference[f"{case}/out/stage{stage}_{key}"] for key in ("a1", "p", "a2", "n", "loss")}
        assert unordered(as_set(kept.anchors, kept.positives)) == unordered(as_set(out["a1"], out["p"]))
        assert unordered(as_set(kept.negative_anchors, kept.negatives)) == unordered(as_set(out["a2"], out["n"]))
        loss = recipe.objective.compare(part, part, kept)
        assert loss.item() == pytest.approx(float(out["loss"]), rel=1e-9)
    total = given_rows(recipe, rows, labels)
    torch.autograd.backward(total)
    assert total.item() == pytest.approx(float(reference[f"{case}/out/total"]), rel=1e-9)
    assert rows.grad is not None
    np.testing.assert_allclose(rows.grad, reference[f"{case}/out/grad_X"], rtol=1e-9, atol=1e-10)


def test_twelve_samples_of_four_classes_keep_24_12_and_6_positives() -> None:
    rows = torch.randn(12, 12, dtype=torch.float64, generator=torch_generator(5))
    labels = torch.arange(12) % 4
    kept = [pairs for _, pairs in build(12).stages(rows, labels)]
    assert [len(pairs.anchors) for pairs in kept] == [24, 12, 6]
    assert [len(pairs.negatives) for pairs in kept] == [108, 54, 27]
    for earlier, later in pairwise(kept):
        assert as_set(later.anchors, later.positives) < as_set(earlier.anchors, earlier.positives)
        assert as_set(later.negative_anchors, later.negatives) < as_set(earlier.negative_anchors, earlier.negatives)


def slow_kept(part: Tensor, pairs: list[tuple[int, int]], fraction: float, *, far: bool) -> list[tuple[int, int]]:
    def gap(pair: tuple[int, int]) -> float:
        first, second = (part[i] / part[i].norm() for i in pair)
        return float((first - second).norm())

    return sorted(pairs, key=gap, reverse=far)[: -int(-fraction * len(pairs) // 1)]


def test_unequal_classes_and_slices_equal_slow_loops() -> None:
    rows = torch.randn(9, 9, dtype=torch.float64, generator=torch_generator(6))
    labels = torch.tensor([2, 0, 1, 0, 0, 2, 3, 0, 1])
    everything = [(i, j) for i in range(9) for j in range(9) if i != j]
    positives = [(i, j) for i, j in everything if labels[i] == labels[j]]
    negatives = [(i, j) for i, j in everything if labels[i] != labels[j]]
    fractions, slices = (0.9, 0.6), (6, 3)
    for fraction, (part, kept) in zip(fractions, build(9, fractions, slices).stages(rows, labels), strict=True):
        positives = slow_kept(part, positives, fraction, far=True)
        negatives = slow_kept(part, negatives, fraction, far=False)
        for (first, second), slow in (
            ((kept.anchors, kept.positives), positives),
            ((kept.negative_anchors, kept.negatives), negatives),
        ):
            assert unordered(as_set(first, second)) == unordered(slow)
        positives = sorted(as_set(kept.anchors, kept.positives))
        negatives = sorted(as_set(kept.negative_anchors, kept.negatives))


@pytest.mark.parametrize("dim", [3, 7, 512])
def test_slices_are_as_even_as_can_be_and_sum_to_the_row(dim: int) -> None:
    widths = CascadeOptions().widths(dim)
    assert sum(widths) == dim
    assert max(widths) - min(widths) <= 1


def test_what_does_not_fit_is_refused_at_load() -> None:
    loss = PairLossOptions()
    assert CascadeOptions(slices=(2, 2, 4)).problem(loss, dim=8, batch_size=8) is None
    for options, dim, message in [
        (CascadeOptions(slices=(2, 2, 3)), 8, r"slices [2, 2, 3] must sum to the row's width 8, got 7"),
        (CascadeOptions(), 2, "fractions makes 3 slices, but a row is 2 wide"),
    ]:
        assert message in (options.problem(loss, dim=dim, batch_size=8) or "")
    refused = CascadeOptions().problem(HistOptions(), dim=8, batch_size=8)
    assert refused is not None
    assert "name 'cascade' chooses what is compared, but loss.name 'hist' takes no pairs" in refused


@pytest.mark.parametrize(
    "changes", [{"slices": [4, 4]}, {"fractions": [0, 1]}, {"fractions": [1.5]}, {"fractions": []}]
)
def test_wrong_settings_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="fractions"):
        CascadeOptions.model_validate(changes)


def test_a_batch_without_pairs_has_no_loss() -> None:
    rows = torch.randn(1, 6, dtype=torch.float64, generator=torch_generator(6), requires_grad=True)
    loss = given_rows(build(6), rows, torch.tensor([3]))
    torch.autograd.backward(loss)
    assert loss.item() == 0
