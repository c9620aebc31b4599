import pytest

from sfora_ray.reporting.comparison.wording import difference, num_seeds, p_equals, p_value, points
from tests.reporting.comparison.synthetic import seed_test


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.0625, "0.0625"), (1.0, "1"), (0.00049, "< 0.001"), (0.001, "0.001"), (0.23451, "0.235"), (None, "–")],
)
def test_p_value(value: float | None, written: str) -> None:
    assert p_value(value) == written


def test_p_after_its_letter() -> None:
    assert (p_equals(0.5), p_equals(1e-9)) == ("p = 0.5", "p < 0.001")


def test_differences_carry_their_sign() -> None:
    assert points(-0.00234) == "-0.23"
    assert difference(0.0069, (-0.0018, 0.0120)) == "+0.69 [-0.18, +1.20]"
    assert difference(0.0069, None) == "+0.69"


def test_unpaired_members_are_called_so() -> None:
    test = seed_test("a", "b", "recall_at_1", 1, 4)
    assert num_seeds(test) == "4"
    assert num_seeds(test.model_copy(update={"test": "welch", "seeds": ()})) == "4 and 4, unpaired"
