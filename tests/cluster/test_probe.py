import time
from pathlib import Path

import pytest
import ray
from ray import ObjectRef

from sfora_ray.cluster import probe
from sfora_ray.cluster.nodes import Answer, Node, alive_nodes, ask_each
from sfora_ray.cluster.probe import refuse_unshared, storage_probe
from sfora_ray.errors import ResourceError, RunFolderError
from tests.storage.server import BUCKET, s3_server

on_the_cluster = [pytest.mark.ray, pytest.mark.usefixtures("cluster")]
GHOST = Node("e" * 56, "ghost", "192.0.2.7", {})


def node(name: str) -> Node:
    return Node(name, name, "10.0.0.1", {})


@ray.remote(num_cpus=0)
def double(number: int) -> int:
    return 2 * number


@ray.remote(num_cpus=0, max_retries=0)
def fail() -> int:
    raise ValueError("no such thing here")


@ray.remote(num_cpus=0, max_retries=0)
def sleep() -> int:
    time.sleep(600)
    return 0


def test_nodes_that_share_the_place_are_let_pass() -> None:
    refuse_unshared("runs", [Answer(node("a"), ""), Answer(node("b"), "")])


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (Answer(node("b"), "does not see it"), "b (10.0.0.1) does not see it"),
        (Answer[str](node("b"), None, "did not answer within 60 s"), "b (10.0.0.1) did not answer within 60 s"),
    ],
)
def test_a_node_without_the_place_is_named_with_the_way_out(bad: Answer[str], said: str) -> None:
    with pytest.raises(ResourceError) as caught:
        refuse_unshared("/runs", [Answer(node("a"), ""), bad])
    message = str(caught.value)
    assert message.startswith("output /runs: ")
    assert said in message
    assert "got 1 without it" in message
    assert "a (10.0.0.1)" not in message
    assert "NFS" in message
    assert "s3://" in message
    assert caught.value.exit_code == 2


class TestOnTheCluster:
    pytestmark = on_the_cluster

    def test_one_node_proves_that_it_can_write(self, tmp_path: Path) -> None:
        assert storage_probe(tmp_path / "runs") == 1
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_cannot_be_written_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(RunFolderError, match="cannot be written"):
            storage_probe(tmp_path / "file" / "runs")

    def test_every_node_is_asked_and_answers(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The only node stands for two: each reads the mark in a task of its own and writes its reply."""
        monkeypatch.setattr(probe, "alive_nodes", lambda: alive_nodes() * 2)
        assert storage_probe(tmp_path) == 2
        assert list(tmp_path.iterdir()) == []

    def test_a_node_that_cannot_be_reached_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(probe, "alive_nodes", lambda: (*alive_nodes(), GHOST))
        with pytest.raises(ResourceError, match=r"all 2 nodes .* got 1 without it: ghost \(192\.0\.2\.7\)"):
            storage_probe(tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_a_node_that_writes_elsewhere_is_not_believed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(probe, "alive_nodes", lambda: alive_nodes() * 2)
        monkeypatch.setattr("sfora_ray.pack.marker.Marker.replied", lambda *_: False)
        with pytest.raises(ResourceError, match="writes what cannot be read here"):
            storage_probe(tmp_path)

    def test_every_node_reaches_an_object_store(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nodes know neither its address nor the credentials, but what travels to them."""
        monkeypatch.setattr(probe, "alive_nodes", lambda: alive_nodes() * 2)
        with s3_server() as server:
            for name, value in server.variables.items():
                monkeypatch.setenv(name, value)
            before = server.keys()
            assert storage_probe(f"s3://{BUCKET}/runs") == 2
            assert len([line for line in server.requests if line.startswith("DELETE")]) == 3
            assert server.keys() == before

    def test_answers_come_in_order_beside_failures(self) -> None:
        (here,) = alive_nodes()

        def send(to: Node) -> ObjectRef[int]:
            pinned = {"scheduling_strategy": here.only_here}
            return fail.options(**pinned).remote() if to.hostname == "bad" else double.options(**pinned).remote(21)

        nodes = [node("bad"), node("good")]
        bad, good = ask_each(nodes, send, seconds=60)
        assert [bad.node, good.node] == nodes
        assert (good.value, good.fault) == (42, "")
        assert bad.value is None
        assert "ValueError: no such thing here" in bad.fault

    def test_a_silent_node_is_not_waited_for(self) -> None:
        start = time.monotonic()
        (answer,) = ask_each([node("a")], lambda _: sleep.remote(), seconds=0.5)
        assert time.monotonic() - start < 10
        assert (answer.value, answer.fault) == (None, "did not answer within 0.5 s")
