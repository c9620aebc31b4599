"""How tests are shared out between workers: what `tests/groups.py` names is there."""

from pathlib import Path

import pytest

from tests import groups

ROOT = Path(__file__).parents[2]
SHARING = {place for places in groups.TOGETHER.values() for place in places}


@pytest.mark.parametrize("place", sorted({*SHARING, *groups.ALONE}))
def test_files_that_stay_together_are_there(place: str) -> None:
    assert (ROOT / place).exists()


@pytest.mark.parametrize("group", groups.LONGEST_FIRST)
def test_groups_in_order_are_groups(group: str) -> None:
    assert group in groups.TOGETHER or ((ROOT / group).is_file() and groups.group_of(f"{group}::test") == group)


@pytest.mark.parametrize(
    ("nodeid", "group", "rank"),
    [
        ("tests/cluster/test_launcher.py::test_a[b::c]", "tests/cluster/", 0),
        ("tests/cluster/test_processes.py::test_a", "tests/cluster/test_processes.py", 5),
        ("tests/folds/test_gpa.py::test_a", "tests/folds/test_gpa.py", len(groups.LONGEST_FIRST)),
    ],
)
def test_groups_of_tests(nodeid: str, group: str, rank: int) -> None:
    assert (groups.group_of(nodeid), groups.rank_of(nodeid)) == (group, rank)
