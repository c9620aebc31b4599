from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from sfora_ray.arrays import Float64
from sfora_ray.errors import ConfigError
from sfora_ray.losses.contextual import Contextual, ContextualOptions, contextual_similarity
from sfora_ray.randomness import torch_generator
from tests.losses.reference import assert_close, load_case, tensor

CASES = ["c0", "c1_k2", "c2_irregular_dup", "c4_no_active", "c5_large_eps"]


def built(**options: Any) -> Contextual:
    return ContextualOptions(**options).build(dim=1, num_classes=1, generator=torch_generator(0))


def of_case(case: dict[str, Any], **others: Any) -> Contextual:
    names = {
        "epsilon": "eps",
        "lam": "lam_paper",
        "gamma": "gamma",
        "target_similarity": "reg_sim",
        "positive_margin": "pos_margin",
        "negative_margin": "neg_margin",
        "alpha": "heaviside_grad",
    }
    options = {option: float(case[f"hp/{name}"]) for option, name in names.items()}
    # A reference case without a violation has margins in an order that users are refused.
    unchecked = ContextualOptions.model_construct(**{**options, "k": int(case["hp/k"]), **others})
    return unchecked.build(dim=1, num_classes=1, generator=torch_generator(0))


def value_and_gradient(objective: Contextual, case: dict[str, Any]) -> tuple[Tensor, Tensor]:
    rows = tensor(case, "in/X", grad=True)
    loss = objective(rows, tensor(case, "in/labels"))
    loss.backward()
    assert rows.grad is not None
    return loss, rows.grad


@pytest.mark.parametrize("name", CASES)
def test_similarity_equals_the_reference(name: str) -> None:
    case = load_case("contextual", name)
    similarity = contextual_similarity(
        tensor(case, "out/scores"), k=int(case["hp/k"]), epsilon=float(case["hp/eps"]), alpha=10.0
    )
    assert_close(similarity, case["out/W"])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("lam", "term"), [(1.0, "context"), (0.0, "contrastive")])
def test_each_term_alone_equals_the_reference(name: str, lam: float, term: str) -> None:
    case = load_case("contextual", name)
    loss, gradient = value_and_gradient(of_case(case, lam=lam, gamma=0.0), case)
    assert_close(loss, case[f"out/{term}"])
    assert_close(gradient, case[f"out/grad_{term}"])


@pytest.mark.parametrize("name", CASES)
def test_regulariser_equals_the_reference(name: str) -> None:
    case = load_case("contextual", name)
    loss, gradient = value_and_gradient(of_case(case, lam=0.0, gamma=1.0), case)
    assert_close(loss, case["out/contrastive"] + case["out/reg"])
    assert_close(gradient, case["out/grad_contrastive"] + case["out/grad_reg"])


@pytest.mark.parametrize("name", CASES)
def test_papers_total_equals_the_reference(name: str) -> None:
    case = load_case("contextual", name)
    loss, gradient = value_and_gradient(of_case(case), case)
    assert_close(loss, case["out/total_paper"])
    assert_close(gradient, case["out/grad_total_paper"])


@pytest.mark.parametrize("name", CASES)
def test_total_of_the_224_program_equals_the_reference(name: str) -> None:
    case = load_case("contextual", name)
    objective = of_case(case, weighting="program_224", lam=float(case["hp/lam_224code"]))
    loss, gradient = value_and_gradient(objective, case)
    assert_close(loss, case["out/hybrid_224"] + case["hp/gamma"] * case["out/reg"])
    assert_close(gradient, case["out/grad_total_paper"])


@pytest.mark.parametrize("name", ["c0", "c1_k2", "c4_no_active", "c5_large_eps"])
def test_total_of_the_256_program_equals_the_reference(name: str) -> None:
    case = load_case("contextual", name)
    loss, gradient = value_and_gradient(of_case(case, weighting="program_256"), case)
    assert_close(loss, case["out/total_256code"])
    assert_close(gradient, case["out/grad_total_256code"])


@pytest.mark.parametrize("alpha", [1.0, 25.0])
def test_gradient_of_the_contextual_term_is_linear_in_alpha(alpha: float) -> None:
    case = load_case("contextual", "c0")
    loss, gradient = value_and_gradient(of_case(case, lam=1.0, gamma=0.0, alpha=alpha), case)
    assert_close(loss, case["out/context"])
    assert_close(gradient, case["out/grad_context"] * alpha / 10)


def slow_similarity(rows: list[list[float]], k: int, epsilon: float) -> Float64:
    """Sets and counts, one pair at a time."""
    everyone = range(len(rows))
    distance = [[sum((a - b) ** 2 for a, b in zip(rows[i], rows[j], strict=True)) for j in everyone] for i in everyone]

    def within(i: int, size: int) -> set[int]:
        return {j for j in everyone if distance[i][j] <= sorted(distance[i])[size - 1] + epsilon}

    near = [within(i, k) for i in everyone]
    half = [within(i, k // 2) for i in everyone]
    first = np.zeros((len(rows), len(rows)))
    for i in everyone:
        far = set(everyone) - near[i]
        for j in near[i]:
            shared = len(near[i] & near[j]) / len(near[i])
            neither = len(far - near[j]) / len(far) if far else 0.0
            first[i, j] = (shared + neither) / 2
    mutual = [[j for j in half[i] if i in half[j]] for i in everyone]
    second = np.stack([first[mutual[i]].mean(axis=0) for i in everyone])
    similarity: Float64 = (second + second.T) / 2
    return similarity


@pytest.mark.parametrize(("k", "epsilon"), [(2, 0.0), (4, 0.05), (4, 0.4), (6, 0.1)])
def test_loss_equals_slow_sets_on_unequal_shuffled_classes(k: int, epsilon: float) -> None:
    labels = [2, 0, 1, 0, 0, 2, 1, 1, 0, 3, 1, 1]
    rows = torch.randn(12, 3, dtype=torch.float64, generator=torch_generator(3))
    unit = rows / rows.norm(dim=1, keepdim=True)
    similarity = slow_similarity(unit.tolist(), k, epsilon)
    errors = [((labels[i] == labels[j]) - similarity[i, j]) ** 2 for i in range(12) for j in range(12) if i != j]
    loss = built(k=k, epsilon=epsilon, lam=1.0, gamma=0.0)(rows * 7, torch.tensor(labels))
    assert loss.item() == pytest.approx(sum(errors) / 144, rel=1e-12)


def slow_contrast(cosines: Tensor, labels: list[int], positive_margin: float, negative_margin: float) -> float:
    everyone = range(len(labels))
    pairs = [(float(cosines[i, j]), labels[i] == labels[j]) for i in everyone for j in everyone if i != j]
    short = [positive_margin - s for s, same in pairs if same and s < positive_margin]
    over = [s - negative_margin for s, same in pairs if not same and s > negative_margin]
    return sum(short) / max(1, len(short)) + sum(over) / max(1, len(over))


@pytest.mark.parametrize("labels", [[0, 1, 0, 2, 1, 0], [0, 0, 0, 0, 0, 0], [0, 1, 2, 3, 4, 5]])
def test_contrast_and_regulariser_equal_slow_loops(labels: list[int]) -> None:
    rows = torch.randn(6, 3, dtype=torch.float64, generator=torch_generator(5))
    unit = rows / rows.norm(dim=1, keepdim=True)
    cosines = unit @ unit.T
    truth = slow_contrast(cosines, labels, 0.5, -0.1) + 3 * (float(cosines.sum()) / 36 - 0.2) ** 2
    options = {"positive_margin": 0.5, "negative_margin": -0.1, "gamma": 3.0, "target_similarity": 0.2}
    assert built(lam=0.0, **options)(rows, torch.tensor(labels)).item() == pytest.approx(truth, rel=1e-12)


def test_a_row_of_zeros_is_no_violating_pair_with_itself() -> None:
    rows = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    # Of the positives only the two of row 0 with row 1 fall short, by .6.
    loss = built(k=2, lam=0.0, gamma=0.0, positive_margin=0.6)(rows, torch.tensor([0, 0, 1, 2]))
    negatives = 1.0 - 0.6  # Rows 1 and 2 coincide.
    assert loss.item() == pytest.approx(0.6 + negatives)
    alone = built(k=2, lam=0.0, gamma=0.0, positive_margin=0.6)(rows, torch.tensor([3, 1, 1, 2]))
    assert alone.item() == 0.0


def test_two_pairs_by_hand() -> None:
    rows = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    objective = built(k=2, lam=1.0, gamma=0.0)
    # Each row and its twin share all neighbours and all strangers: similarity 1; to the other two it is 0.
    assert objective(rows, torch.tensor([0, 0, 1, 1])).item() == 0.0
    assert objective(rows, torch.tensor([0, 1, 0, 1])).item() == pytest.approx(8 / 16)


def test_a_batch_that_is_one_neighbourhood_stays_finite() -> None:
    rows = torch.randn(4, 3, generator=torch_generator(7), requires_grad=True)
    loss = built(k=4, lam=1.0, gamma=0.0)(rows, torch.zeros(4, dtype=torch.int64))
    loss.backward()
    # All neighbours shared, no strangers to share: 1/2 for each of the 12 pairs.
    assert loss.item() == pytest.approx(12 * 0.25 / 16)
    assert rows.grad is not None
    assert torch.isfinite(rows.grad).all()


def test_order_of_rows_does_not_matter() -> None:
    rows = torch.randn(12, 5, dtype=torch.float64, generator=torch_generator(8))
    labels = torch.arange(3).repeat_interleave(4)
    shuffled = torch.randperm(12, generator=torch_generator(9))
    objective = built()
    assert objective(rows[shuffled], labels[shuffled]).item() == pytest.approx(
        objective(rows, labels).item(), rel=1e-12
    )


def test_gradcheck_of_the_smooth_terms() -> None:
    rows = torch.randn(6, 3, dtype=torch.float64, generator=torch_generator(10), requires_grad=True)
    labels = torch.tensor([0, 0, 1, 1, 2, 2])
    objective = built(k=2, lam=0.0)
    assert torch.autograd.gradcheck(lambda x: objective(x, labels), (rows,))


def test_a_step_along_the_gradient_lowers_the_contextual_term() -> None:
    rows = torch.randn(24, 8, generator=torch_generator(11), requires_grad=True)
    labels = torch.arange(6).repeat_interleave(4)
    objective = built(lam=1.0, gamma=0.0)
    optimizer = torch.optim.Adam([rows], lr=0.05)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = objective(rows, labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize(
    ("k", "batch_size", "per_class", "words"),
    [
        (3, 12, 3, "must be even"),
        (4, 32, 8, "must equal the images of each class in a batch, 8, got 4"),
        (4, 32, None, "does not fix how many"),
    ],
)
def test_a_batch_that_does_not_fit_is_refused(k: int, batch_size: int, per_class: int | None, words: str) -> None:
    problem = ContextualOptions(k=k).batch_problem(batch_size, per_class)
    assert problem is not None
    assert words in problem


def test_a_batch_that_fits_is_not_refused() -> None:
    assert ContextualOptions(k=4).batch_problem(128, 4) is None


def test_a_batch_smaller_than_a_neighbourhood_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"at least k = 4 images, got 3\."):
        built()(torch.randn(3, 2, generator=torch_generator(12)), torch.tensor([0, 0, 1]))


def test_a_negative_weight_of_the_contrast_is_refused() -> None:
    with pytest.raises(ValidationError, match="must not exceed 1 together"):
        ContextualOptions(weighting="program_256", lam=0.95)
    assert ContextualOptions(weighting="program_256", lam=0.4).weights == pytest.approx((0.4, 0.5))


def test_reversed_margins_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"must not be below negative_margin, got 0\.5 and 0\.6"):
        ContextualOptions(positive_margin=0.5)
    assert ContextualOptions(positive_margin=0.6).negative_margin == 0.6
