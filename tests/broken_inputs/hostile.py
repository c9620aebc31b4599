"""Files that are damaged, or meant to run code when they are read."""

import json
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy


class Code:
    """Runs when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path("owned").write_text, ("owned",)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def absurd_header(path: Path) -> None:
    path.write_bytes(struct.pack("<Q", 2**62) + b"{}")


def reaching_out(path: Path) -> None:
    header = json.dumps({"matrix": {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 2**40]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(64))


def other_tensors(path: Path) -> None:
    safetensors.numpy.save_file({"other": np.zeros(3, np.float32)}, path)


def pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps(Code()))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def error_page(path: Path) -> None:
    path.write_text("<!DOCTYPE html><html><title>404 Not Found</title></html>")
