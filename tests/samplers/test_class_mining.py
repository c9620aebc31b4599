import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfora_ray.arrays import Float, Float64, Int64, l2_normalize
from sfora_ray.randomness import numpy_generator
from sfora_ray.samplers.class_mining import class_violations, select_classes


def slow_violations(rows: Float, labels: list[int]) -> list[list[float]]:
    classes = sorted(set(labels))
    table = []
    for own in classes:
        line = []
        for foreign in classes:
            worst = -np.inf
            for a, n in np.ndindex(len(labels), len(labels)):
                if labels[a] != own or labels[n] != foreign or own == foreign:
                    continue
                positives = [float(rows[a] @ rows[p]) for p in range(len(labels)) if labels[p] == own and p != a]
                worst = max(worst, float(rows[a] @ rows[n]) - min(positives, default=0.0))
            line.append(worst)
        table.append(line)
    return table


def examples(counts: list[int], seed: int = 0) -> tuple[Float, Int64]:
    labels = np.repeat(np.array([2, 5, 6, 11, 12, 30])[: len(counts)], counts)
    rows = numpy_generator(seed, "rows").normal(size=(len(labels), 4))
    return l2_normalize(rows), labels.astype(np.int64)


@given(st.lists(st.integers(1, 4), min_size=2, max_size=6), st.integers(0, 99))
def test_violations_equal_a_slow_loop_on_unequal_sizes(counts: list[int], seed: int) -> None:
    rows, labels = examples(counts, seed)
    np.testing.assert_allclose(class_violations(rows, labels), slow_violations(rows, labels.tolist()), atol=1e-8)


def test_a_hand_example() -> None:
    # Class 0: 1 and 0.6; class 1: 0.8 alone; class 2: -1 twice. Products are taken on a line.
    rows, labels = np.array([[1.0], [0.6], [0.8], [-1.0], [-1.0]]), np.array([0, 0, 1, 2, 2])
    expected = [
        [-np.inf, 0.8 - 0.6, -0.6 - 0.6],
        [0.8, -np.inf, -0.8],  # the only example of its class: a.p is 0
        [-0.6 - 1, -0.8 - 1, -np.inf],
    ]
    np.testing.assert_allclose(class_violations(rows, labels), expected)


def slow_select(violations: Float64, first: int, number: int) -> list[set[int]]:
    """Return for each place the classes that may be chosen there, given no ties."""
    chosen = [first]
    while len(chosen) < number:
        best = max(
            (c for c in range(len(violations)) if c not in chosen),
            key=lambda c: max(float(violations[s, c]) for s in chosen),
        )
        chosen.append(best)
    return [{label} for label in chosen]


@pytest.mark.parametrize("number", [1, 2, 4, 6])
def test_selection_equals_a_slow_greedy_one(number: int) -> None:
    for seed in range(20):
        violations = class_violations(*examples([2, 3, 2, 1, 4, 2], seed))
        chosen = select_classes(violations, number, numpy_generator(seed, "x")).tolist()
        assert [{label} for label in chosen] == slow_select(violations, chosen[0], number)


def test_every_class_begins_equally_often_and_ties_are_broken_at_random() -> None:
    apart = class_violations(np.eye(4)[[0, 0, 1, 1, 2, 2, 3, 3]], np.arange(8) // 2)  # all violate by -1
    chosen = [tuple(select_classes(apart, 3, numpy_generator(seed, "ties")).tolist()) for seed in range(2400)]
    orders, counts = np.unique(chosen, axis=0, return_counts=True)
    assert len(orders) == 24
    assert (np.abs(counts - 100) < 50).all()


def test_equal_images_tie_though_their_products_are_rounded() -> None:
    row = l2_normalize(numpy_generator(3, "row").normal(size=(1, 64)).astype(np.float32))
    rows = np.concatenate([np.repeat(row, 6, axis=0), -row, -row])
    violations = class_violations(rows, np.arange(8) // 2)
    second = {int(select_classes(violations[:3, :3], 2, numpy_generator(seed, "x"))[1]) for seed in range(40)}
    assert second == {0, 1, 2}
    assert not violations[0, 1] - violations[0, 2]
