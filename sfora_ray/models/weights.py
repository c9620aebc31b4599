"""Weight files: found, read, and proved to belong to the network, or refused with one error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from sfora_ray.errors import WeightsError

State = dict[str, Tensor]


def existing_file(path: Path) -> Path:
    """Return ``path`` if it is a file.

    Raises:
        WeightsError: there is none, or a folder.
    """
    if not path.is_file():
        there, way_out = ("a folder", "Give a file in it") if path.is_dir() else ("nothing there", "Correct the path")
        raise WeightsError(f"weights {path}: must be a file, got {there}. {way_out}.")
    return path


def read_weights(path: Path) -> State:
    """Read a ``.safetensors`` file, or a torch file of tensors alone; code in a pickle is never run.

    Raises:
        WeightsError: the file is absent, damaged, or holds something else than named tensors.
    """
    existing_file(path)
    try:
        content = _read(path)
    except Exception as error:
        fault = "that cannot be read" if isinstance(error, OSError) else "that is none"
        raise WeightsError(
            f"weights {path}: must be a whole .safetensors or torch file of tensors, got a file {fault} "
            f"({_reason(error)}). Copy or download the file again, or save the network's state_dict."
        ) from error
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        raise WeightsError(
            f"weights {path}: must hold named tensors alone, got {type(content).__name__} with other values. "
            "Save the network's state_dict to a file of its own."
        )
    return dict(content)


def _read(path: Path) -> Any:
    if path.suffix == ".safetensors":
        return load_file(path)
    return torch.load(path, map_location="cpu", weights_only=True)


def _reason(error: Exception) -> str:
    """Return an error's kind and first sentence, without torch's advice to run the code in a file."""
    text = str(error)
    lines = (text.partition("WeightsUnpickler error:")[2] or text).strip().splitlines()
    sentence = lines[0].partition(". ")[0].rstrip(".") if lines else ""
    return ": ".join(filter(None, (type(error).__name__, sentence)))


def install_weights(network: nn.Module, weights: State, *, source: str, classifier: str | None = None) -> None:
    """Load weights whose names and shapes are exactly the network's.

    Args:
        network: receives the weights.
        weights: named tensors.
        source: where they come from, for the message.
        classifier: the name of the final layer, which is left out of ``weights``.

    Raises:
        WeightsError: names or shapes differ; the message lists a few.
    """
    kept = {name: value for name, value in weights.items() if name.rpartition(".")[0] != classifier}
    differences = _differences(network.state_dict(), kept)
    if differences:
        more = f" and {len(differences) - 3} more" if len(differences) > 3 else ""
        raise WeightsError(
            f"weights {source}: must be those of this network, got {'; '.join(differences[:3])}{more}. "
            "Give the weights of the configured network or change the network."
        )
    network.load_state_dict(kept, strict=False)


def _differences(expected: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> list[str]:
    """Describe every difference; BatchNorm's batch counters, which some files leave out, may be missing."""
    missing = [f"no '{name}'" for name in expected if name not in given and not name.endswith("num_batches_tracked")]
    unknown = [f"unknown '{name}'" for name in given if name not in expected]
    reshaped = [
        f"'{name}' of shape {tuple(given[name].shape)} instead of {tuple(value.shape)}"
        for name, value in expected.items()
        if name in given and given[name].shape != value.shape
    ]
    return [*reshaped, *missing, *unknown]
