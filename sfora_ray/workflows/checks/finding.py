"""What a check finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Level = Literal["green", "yellow", "red"]


@dataclass(frozen=True)
class Finding:
    """One line of the doctor: green is well, yellow works but has a cost, red will spoil a pack.

    ``advice`` says what to do and is empty where the level is green.
    """

    area: str
    level: Level
    found: str
    advice: str = ""


@dataclass(frozen=True)
class Check:
    """A question: its ``area``, what goes on while it is asked, and for how long at most."""

    area: str
    doing: str
    ask: Callable[[], Sequence[Finding]]
    seconds: float = 60.0
