from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfora_ray.cluster.capacity import in_words, members_that_fit, need_per_worker, workers_that_fit
from sfora_ray.config.pack import ResourceOptions

nodes_in_tenths = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 4)), max_size=4)
needs_in_tenths = st.tuples(st.integers(1, 40), st.one_of(st.integers(0, 10), st.sampled_from([20, 30])))


def placed_one_by_one(nodes: Sequence[tuple[int, int]], cpus: int, gpus: int) -> int:
    """Count by putting one worker after the other where there is room: CPUs in tenths, each GPU as ten tenths."""
    return sum(_placed_on(node_cpus, [10] * node_gpus, cpus, gpus) for node_cpus, node_gpus in nodes)


def _placed_on(free_cpus: int, free_gpus: list[int], cpus: int, gpus: int) -> int:
    placed = 0
    shares = [10] * (gpus // 10) if gpus >= 10 else [gpus] if gpus else []
    while free_cpus >= cpus:
        free_cpus -= cpus
        for share in shares:
            roomy = [place for place, free in enumerate(free_gpus) if free >= share]
            if not roomy:
                return placed
            free_gpus[roomy[0]] -= share
        placed += 1
    return placed


@given(nodes_in_tenths, needs_in_tenths)
def test_as_many_workers_fit_as_can_be_placed(nodes: list[tuple[int, int]], need: tuple[int, int]) -> None:
    in_wholes = [{"CPU": cpus / 10, **({"GPU": float(gpus)} if gpus else {})} for cpus, gpus in nodes]
    wanted = {"CPU": need[0] / 10, **({"GPU": need[1] / 10} if need[1] else {})}
    assert workers_that_fit(in_wholes, wanted) == placed_one_by_one(nodes, *need)


def test_a_worker_is_whole_on_one_node() -> None:
    assert workers_that_fit([{"CPU": 4.0, "GPU": 0.5}, {"CPU": 4.0, "GPU": 0.5}], {"CPU": 1.0, "GPU": 1.0}) == 0


def test_what_is_not_needed_is_not_asked_for() -> None:
    assert need_per_worker(ResourceOptions(cpus_per_worker=2)) == {"CPU": 2.0}
    assert need_per_worker(ResourceOptions(gpus_per_worker=0.25)) == {"CPU": 1.0, "GPU": 0.25}
    assert need_per_worker(ResourceOptions(memory_gigabytes_per_worker=1.5)) == {"CPU": 1.0, "memory": 1.5e9}


def test_amounts_in_words() -> None:
    assert in_words({"GPU": 0.5, "CPU": 2.0, "node:10.0.0.1": 1.0}) == "2 CPU, 0.5 GPU"
    assert in_words({"CPU": 2.0, "memory": 2.5e9}) == "2 CPU, 2.5 GB memory"
    assert in_words({}) == "0 CPU"


@pytest.mark.ray
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("resources", "fit"),
    [
        ({}, 5),
        ({"gpus_per_worker": 1}, 2),
        ({"gpus_per_worker": 0.4}, 4),
        ({"gpus_per_worker": 0.5}, 4),
        ({"workers_per_member": 2}, 2),
        ({"workers_per_member": 2, "gpus_per_worker": 1}, 1),
        ({"memory_gigabytes_per_worker": 1e-6}, 5),
        ({"memory_gigabytes_per_worker": 1e6}, 0),
        ({"max_concurrent_members": 3}, 3),
        ({"max_concurrent_members": 9}, 5),
    ],
)
def test_members_that_fit_on_five_cpus_and_two_gpus(resources: dict[str, float], fit: int) -> None:
    assert members_that_fit(ResourceOptions.model_validate(resources)) == fit
