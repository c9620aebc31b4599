"""What a launcher does, whatever it launches with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from sfora_ray.config.member import MemberSpec
from sfora_ray.folds import Moments
from sfora_ray.pack.gather import PackBlocks

MemberState = Literal["queued", "starting", "running", "finished", "failed", "stopped"]


class Launched(Protocol):
    """Members under way."""

    def poll(self) -> Mapping[str, MemberState]:
        """Start members that now have room; return each member's state."""
        ...

    def stop(self) -> None:
        """Stop every member and free what they hold."""
        ...

    def gather(self, finished: Sequence[MemberSpec]) -> PackBlocks:
        """Return the blocks of these members, proved to belong together."""
        ...

    def moments(self, blocks: PackBlocks) -> Moments:
        """Return the moments of the train blocks."""
        ...
