"""Folders of this machine: can they be written, renamed in, locked in, and is there room."""

from __future__ import annotations

import shutil
from pathlib import Path

from sfora_ray.errors import SforaError
from sfora_ray.files import write_bytes
from sfora_ray.pack.lock import is_locked, run_lock
from sfora_ray.pack.marker import marked
from sfora_ray.storage import ObjectStore, is_address
from sfora_ray.workflows.checks.finding import Finding

_GIB = 1 << 30
_SCARCE_BYTES = 10 * _GIB
_TOO_FEW_BYTES = 1 * _GIB


def output_place(output: Path | str) -> list[Finding]:
    """Prove that run folders can be written where the config wants them."""
    if is_address(str(output)):
        ObjectStore(str(output), pauses_seconds=(1.0,)).check()
        return [Finding("output", "green", f"{output}: one byte up, down and deleted")]
    return _output_folder(Path(output).expanduser())


def _output_folder(output: Path) -> list[Finding]:
    with marked(output) as marker:
        fault = _fault_of_rename(marker.place) or _fault_of_lock(marker.place)
        free = shutil.disk_usage(marker.place).free
    if fault:
        advice = "Choose an `output` on a local disk, NFS 4, or Lustre mounted with `flock`"
        return [Finding("output", "red", f"{output.absolute()}: {fault}", advice)]
    return [judge_room("output", output, free, "rename and lock work, ")]


def cache_folder(cache_dir: Path) -> list[Finding]:
    """Prove that prepared data can be kept on this machine."""
    with marked(cache_dir) as marker:
        return [judge_room("cache_dir", cache_dir, shutil.disk_usage(marker.place).free, "can be written, ")]


def judge_room(area: str, folder: Path, free: int, works: str) -> Finding:
    """Judge the free space of a folder in which all else works."""
    found = f"{folder.absolute()}: {works}{free / _GIB:.1f} GiB free"
    if free < _TOO_FEW_BYTES:
        return Finding(area, "red", found, f"Free {_SCARCE_BYTES // _GIB} GiB or choose another `{area}`")
    if free < _SCARCE_BYTES:
        return Finding(area, "yellow", found, "Enough for small packs only: free some space before a night's run")
    return Finding(area, "green", found)


def _fault_of_rename(folder: Path) -> str:
    target = folder / "renamed"
    for content in (b"old", b"new"):
        write_bytes(target, content)
    return "" if target.read_bytes() == b"new" else "a file renamed over another does not replace it"


def _fault_of_lock(folder: Path) -> str:
    try:
        with run_lock(folder, patience_seconds=0):
            return "" if is_locked(folder) else "a lock (flock) is given to two holders at once"
    except SforaError as error:
        return str(error)
