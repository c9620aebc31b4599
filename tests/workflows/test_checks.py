"""What the doctor makes of what it finds."""

import socket
import threading
from pathlib import Path

import pytest

from sfora_ray.cluster.facts import Gpu, NodeFacts, TokenSource
from sfora_ray.cluster.nodes import Answer, Node
from sfora_ray.errors import ResourceError
from sfora_ray.workflows.checks.finding import Check, Finding
from sfora_ray.workflows.checks.folders import judge_room, output_place
from sfora_ray.workflows.checks.inquiry import inquiry
from sfora_ray.workflows.checks.packages import judge_cuda, unmet, versions
from sfora_ray.workflows.checks.ray_cluster import judge_gpus, judge_shared_memory, judge_token, judge_versions
from sfora_ray.workflows.checks.tracker import judge_server

GIB = 1 << 30
WELL = Finding("here", "green", "well")


def broken() -> list[Finding]:
    raise KeyError("lost")


def refusing() -> list[Finding]:
    raise ResourceError("resources: too much, got 9. Lower it.")


def test_no_check_hangs_or_raises_and_the_next_one_is_asked() -> None:
    forever = threading.Event()
    with inquiry() as ask:
        assert ask(Check("here", "looking", lambda: [WELL])) == [WELL]
        (silent,) = ask(Check("disk", "writing", lambda: [WELL] * forever.wait(60), seconds=0.2))
        (failed,) = ask(Check("data", "reading", broken))
        (refused,) = ask(Check("members", "counting", refusing))
        assert ask(Check("here", "looking", lambda: [WELL])) == [WELL]
    forever.set()
    assert (silent.area, silent.level, silent.found) == ("disk", "red", "no answer within 0.2 s while writing")
    assert (failed.area, failed.level, failed.found) == ("data", "red", "KeyError while reading: 'lost'")
    assert refused == Finding("members", "red", "resources: too much, got 9", "Lower it")
    assert all(finding.advice for finding in (silent, failed, refused))


def test_all_checks_run_in_one_thread_which_then_ends() -> None:
    """The kernel ends the processes of a local Ray together with the thread that started them."""
    seen: list[threading.Thread] = []

    def look() -> list[Finding]:
        seen.append(threading.current_thread())
        return [WELL]

    with inquiry() as ask:
        for _ in range(3):
            assert ask(Check("here", "looking", look)) == [WELL]
        assert len(set(seen)) == 1
        assert seen[0].is_alive()
    assert not seen[0].is_alive()


def test_requirements_are_compared_with_what_is_installed() -> None:
    assert unmet(["pytest>=1", "no-such-package>=2; extra == 'dev'"]) == []
    wrong = unmet(["pytest<1", "no-such-package>=2", "no-such-package; python_version < '3'"])
    assert wrong[0].startswith("pytest ")
    assert wrong[0].endswith("(needs <1)")
    assert wrong[1:] == ["no-such-package is missing (needs >=2)"]


def test_the_versions_of_this_environment_are_shown() -> None:
    (finding,) = versions()
    assert finding.area == "packages"
    assert finding.level == "green" or finding.advice


@pytest.mark.parametrize(
    ("build", "driver", "usable", "level"),
    [
        ("13.0", "580.65.06", True, "green"),
        ("13.0", "470.1", False, "red"),
        (None, "580.65.06", False, "red"),
        ("13.0", "", False, "green"),
        (None, "", False, "green"),
    ],
)
def test_cuda(build: str | None, driver: str, usable: bool, level: str) -> None:
    finding = judge_cuda(build, driver, usable=usable, reason="" if usable else "the driver is too old")
    assert finding.level == level
    assert bool(finding.advice) == (level != "green")
    assert driver in finding.found
    assert ("too old" in finding.found) == (level == "red" and build is not None)


@pytest.mark.parametrize(("free", "level"), [(0.5, "red"), (5, "yellow"), (50, "green")])
def test_free_space(free: float, level: str) -> None:
    assert judge_room("output", Path("/runs"), int(free * GIB), "").level == level


def test_an_output_of_this_machine(tmp_path: Path) -> None:
    (finding,) = output_place(tmp_path / "runs")
    assert "rename and lock work" in finding.found
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_locks_is_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfora_ray.workflows.checks.folders.is_locked", lambda _: False)
    (finding,) = output_place(tmp_path)
    assert finding.level == "red"
    assert "two holders at once" in finding.found


@pytest.mark.parametrize(
    ("token", "joins", "level"),
    [
        (TokenSource("", "~/.ray/auth_token"), True, "green"),
        (TokenSource("", ""), False, "green"),
        (TokenSource("", ""), True, "yellow"),
        (TokenSource("token", ""), True, "red"),
        (TokenSource("token", "RAY_AUTH_TOKEN_PATH (x)", "the file is empty"), False, "red"),
        (TokenSource("disabled", "RAY_AUTH_TOKEN"), False, "yellow"),
    ],
)
def test_tokens(token: TokenSource, joins: bool, level: str) -> None:
    finding = judge_token(token, joins=joins)
    assert finding.level == level
    assert bool(finding.advice) == (level != "green")


def answer(
    name: str, gpus: int, seen: int, *, shm: float = 8, store: float = 4, torch: str = "2.14"
) -> Answer[NodeFacts]:
    node = Node(name, name, "10.0.0.1", {"GPU": gpus, "object_store_memory": store * GIB})
    return Answer(node, NodeFacts({"torch": torch}, (Gpu("H200", 139 * GIB),) * seen, int(shm * GIB)))


@pytest.mark.parametrize(("seen", "level"), [(2, "green"), (1, "red"), (0, "red"), (4, "yellow")])
def test_gpus_seen_against_gpus_scheduled(seen: int, level: str) -> None:
    finding = judge_gpus([answer("head", 0, 0), answer("worker", 2, seen)])
    assert finding.level == level
    shown = f"{seen} x H200 (139 GiB)" if seen else "none"
    assert finding.found == f"worker (10.0.0.1): Ray schedules 2, torch sees {shown}"


def test_one_node_without_its_gpus_is_red_beside_one_with_too_many() -> None:
    assert judge_gpus([answer("a", 1, 2), answer("b", 2, 1)]).level == "red"


def test_no_gpus_at_all_are_well() -> None:
    assert judge_gpus([answer("head", 0, 0)]) == Finding("GPUs", "green", "none")


@pytest.mark.parametrize(("shm", "level"), [(8, "green"), (4, "green"), (0.0625, "yellow"), (0, "yellow")])
def test_shared_memory_against_the_object_store(shm: float, level: str) -> None:
    finding = judge_shared_memory([answer("a", 0, 0), answer("b", 0, 0, shm=shm)])
    assert finding.level == level
    assert f"b (10.0.0.1): {shm:.1f} GiB for an object store of 4.0 GiB" in finding.found


def test_nodes_of_one_version_are_named_and_others_told_apart() -> None:
    assert judge_versions([answer("a", 0, 0), answer("b", 0, 0)]).level == "green"
    finding = judge_versions([answer("a", 0, 0), answer("b", 0, 0, torch="2.9")])
    assert finding.level == "red"
    assert "b (10.0.0.1): torch 2.9" in finding.found


def test_a_silent_node_is_red() -> None:
    finding = judge_versions([answer("a", 0, 0), Answer(Node("b", "b", "10.0.0.2", {}), None, "did not answer")])
    assert (finding.level, finding.found) == ("red", "b (10.0.0.2) did not answer")


@pytest.mark.parametrize(
    ("version", "level"), [("3.17.2", "green"), ("unknown", "green"), ("2.22.0", "red"), ("", "green")]
)
def test_servers(version: str, level: str) -> None:
    assert judge_server(f"http://{socket.gethostname()}", version).level == level
