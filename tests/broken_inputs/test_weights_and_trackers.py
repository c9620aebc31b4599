"""Weight files that are damaged or run code, and trackers that cannot be."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.broken_inputs.conftest import Refused
from tests.broken_inputs.hostile import Code, absurd_header, empty, error_page, other_tensors, pickled, truncated
from tests.tiny import tiny_values
from tests.tiny_runs import write_config


def saved_code(path: Path) -> None:
    torch.save({"conv1.weight": torch.zeros(3), "more": Code()}, path)


def half_saved(path: Path) -> None:
    torch.save({"conv1.weight": torch.zeros(3000)}, path)
    truncated(path)


def wrong_shapes(path: Path) -> None:
    torch.save({"conv1.weight": torch.zeros(3)}, path)


def a_whole_network(path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), path)


def a_list(path: Path) -> None:
    torch.save([torch.zeros(3)], path)


FILES: list[tuple[str, Callable[[Path], None]]] = [
    ("w.pth", saved_code),
    ("w.pth", pickled),
    ("w.pth", half_saved),
    ("w.pth", error_page),
    ("w.pth", empty),
    ("w.pth", wrong_shapes),
    ("w.pth", a_whole_network),
    ("w.pth", a_list),
    ("w.safetensors", absurd_header),
    ("w.safetensors", pickled),
    ("w.safetensors", error_page),
    ("w.safetensors", other_tensors),
]


@pytest.mark.parametrize(("name", "write"), FILES, ids=[f"{name}-{write.__name__}" for name, write in FILES])
def test_a_weight_file(name: str, write: Callable[[Path], None], images: Path, refused: Refused) -> None:
    write(refused.place / name)
    values = tiny_values(images, refused.place)
    values["model"]["backbone"] = {"name": "resnet18", "weights": name}
    path = write_config(refused.place / "tiny.yaml", values)
    refused("pack", "run", path, "--local", words=(f"weights {name}: must ",))
    assert not (refused.place / "owned").exists()


TRACKERS: list[tuple[str, tuple[str, ...]]] = [
    ("./mlruns", ("tracking.uri: must be a server", "not a folder")),
    ("file:///tmp/mlruns", ("tracking.uri: must be a server", "not a folder")),
    ("ftp://host/x", ("tracking.uri: must be a server",)),
    ("http://", ("tracking.uri: must name a host",)),
    ("sqlite:///", ("tracking.uri: must name a database file",)),
    ("sqlite://", ("tracking.uri: must name a database file",)),
    ("http://someone:geheim@host:5000", ("tracking.uri: must not hold a password", "***")),
    ("postgresql://someone:geheim@host/db", ("tracking.uri: must not hold a password", "***")),
    ("http://host:5000?token=geheim", ("tracking.uri: must not hold a password", "***")),
    ("http://127.0.0.1:9", ("http://127.0.0.1:9",)),
]


@pytest.mark.parametrize(("uri", "words"), TRACKERS, ids=[uri for uri, _ in TRACKERS])
def test_a_tracker(uri: str, words: tuple[str, ...], images: Path, refused: Refused) -> None:
    values = tiny_values(images, refused.place)
    values["tracking"] = {"name": "mlflow", "uri": uri}
    path = write_config(refused.place / "tiny.yaml", values)
    ended = refused("pack", "run", path, "--local", words=words)
    assert "geheim" not in ended.err + ended.out
