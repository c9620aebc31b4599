"""The records that travel: a spec to the worker that trains a member, a result back."""

from __future__ import annotations

from typing import Literal

from sfora_ray.config.pack import PackConfig
from sfora_ray.options import Options

Split = Literal["validation", "test"]


class MemberSpec(Options):
    """Everything a worker needs to train one member."""

    id: str
    """``m00``, ``m01`` and so on, the member's place in the pack."""
    seed: int
    config: PackConfig
    left_out: tuple[str, ...] = ()
    """Ids of images that could not be read when the pack started; no member sees them."""
    dataset_digest: str = ""
    """Of the rows that members are to see; empty where it is not known."""
    scored: tuple[Split, ...] = ("test", "validation")
    """Splits that are scored after an epoch, where there are any. A member of a sweep that is not to see the test
    classes is not scored on them, nor embeds them when it has finished."""

    @property
    def folder_name(self) -> str:
        """Return the name of the member's folder in the run folder."""
        return f"{self.id}-seed{self.seed}"


Cause = Literal["", "input", "non_finite", "exception", "out_of_memory", "signal", "node_lost", "storage", "timeout"]
"""What kind of end a failed member or an earlier attempt of it met; empty for one that finished."""


class MemberResult(Options):
    """What became of one member; a failed member is a result too."""

    id: str
    seed: int
    status: Literal["finished", "failed", "stopped"]
    """A stopped member has saved its state and goes on when the pack is resumed; it leaves no `result.json`."""
    cause: Cause = ""
    reason: str = ""
    """Why it failed: one line; the worker's log has the traceback."""
    epochs: int = 0
    """Epochs it was trained for; fewer than the config's once a pack is extended."""
    restarts: tuple[str, ...] = ()
    """Why each earlier attempt ended before its time, oldest first."""
    best_epoch: int | None = None
    selected_on: Literal["validation", "test", "last"] | None = None
    metrics: dict[str, float] = {}
    """Test metrics of the selected epoch."""
    train_seconds: float = 0.0
    """Wall time of training steps, evaluation left out."""
    images_per_second: float = 0.0
    images_decoded: int = 0
    """Images that had to be decoded; 0 where another member had filled the node's cache."""
    device: str = ""
    accelerators: tuple[str, ...] = ()
    """Ids of the GPUs that Ray scheduled for the first worker."""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What was left out of data or batches on purpose."""
    dataset_digest: str = ""
