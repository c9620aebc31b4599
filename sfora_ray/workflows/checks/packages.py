"""Python, the packages beside it, and torch's CUDA against the driver of this machine."""

from __future__ import annotations

import importlib.metadata
import platform
import warnings
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from sfora_ray.workflows.checks.finding import Finding

_SHOWN = ("torch", "ray", "mlflow")
_PACKAGE = "sfora-ray"
_DRIVER = Path("/proc/driver/nvidia/version")


def versions() -> list[Finding]:
    """Compare every installed package with what this one says it needs."""
    try:
        metadata = importlib.metadata.metadata(_PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return [Finding("packages", "yellow", f"{_PACKAGE} is not installed, versions are not compared", "make .venv")]
    wrong = unmet(importlib.metadata.requires(_PACKAGE) or ())
    python = platform.python_version()
    if python not in SpecifierSet(metadata["Requires-Python"] or "", prereleases=True):
        wrong.insert(0, f"python {python} (needs {metadata['Requires-Python']})")
    if wrong:
        return [Finding("packages", "red", "; ".join(wrong), "pip install --requirement requirements.lock")]
    shown = [f"{name} {importlib.metadata.version(name)}" for name in _SHOWN]
    return [Finding("packages", "green", ", ".join([f"python {python}", *shown]))]


def unmet(requirements: Iterable[str]) -> list[str]:
    """Return each requirement that this environment does not meet, in words; optional ones are left out."""
    parsed = [Requirement(text) for text in requirements]
    needed = [one for one in parsed if one.marker is None or one.marker.evaluate({"extra": ""})]
    return [fault for one in needed if (fault := _fault_of(one))]


def _fault_of(needed: Requirement) -> str:
    try:
        found = importlib.metadata.version(needed.name)
    except importlib.metadata.PackageNotFoundError:
        return f"{needed.name} is missing (needs {needed.specifier or 'any version'})"
    met = needed.specifier.contains(found, prereleases=True)
    return "" if met else f"{needed.name} {found} (needs {needed.specifier})"


def cuda() -> list[Finding]:
    """Compare torch's CUDA with the driver here."""
    import torch

    with warnings.catch_warnings(record=True) as said:
        # torch says in a warning why it cannot use a driver, such as one that is too old.
        warnings.simplefilter("always")
        usable = torch.cuda.is_available()
    reason = " ".join(str(said[0].message).split()) if said else ""
    return [judge_cuda(torch.version.cuda, _driver(), usable=usable, reason=reason)]


def judge_cuda(build: str | None, driver: str, *, usable: bool, reason: str) -> Finding:
    """Judge a build of torch (its CUDA version or None) against a driver (empty where there is none)."""
    torch_is = f"torch for CUDA {build}" if build else "torch for CPUs"
    if usable:
        return Finding("CUDA", "green", f"{torch_is}, driver {driver or 'found'}")
    if not driver:
        return Finding("CUDA", "green", f"{torch_is}, no NVIDIA driver on this machine")
    if build is None:
        return Finding("CUDA", "red", f"{torch_is}, but there is a driver {driver}", "Install a CUDA build of torch")
    return Finding(
        "CUDA",
        "red",
        f"{torch_is} cannot use driver {driver}" + (f": {reason:.200}" if reason else ""),
        "Update the driver or install a torch built for it; see that CUDA_VISIBLE_DEVICES does not hide the GPUs",
    )


def _driver() -> str:
    """Return the version of the NVIDIA driver, or an empty string."""
    if not _DRIVER.exists():
        return ""
    words = _DRIVER.read_text(encoding="utf-8", errors="replace").split()
    return next((word for word in words if word[0].isdigit() and "." in word), "of unknown version")
