"""What a benchmark says: a ratio of two things timed in turn in one run, and the mark it is held against.

Machines are shared and noisy, so an absolute time proves nothing; both sides alternate and medians are
compared.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Generic, TypeVar

Ours = TypeVar("Ours")
Theirs = TypeVar("Theirs")

SAMPLE_SECONDS = 0.005
PAGE_KIB = 4


@dataclass(frozen=True)
class BenchmarkResult:
    """One line of the table.

    Attributes:
        name: of the benchmark.
        ours_seconds: median.
        theirs_seconds: median.
        ratio: ``theirs / ours`` where the mark is a speed-up, ``ours / theirs`` where it is an overhead.
        mark: what the ratio is to be, such as ``>= 10`` or ``<= 1.3``.
        peak_mib: memory that our side needed on top of its inputs, in MiB.
        note: sizes, and what was checked to be equal.
    """

    name: str
    ours_seconds: float
    theirs_seconds: float
    ratio: float
    mark: str
    peak_mib: float
    note: str

    @property
    def reached(self) -> bool:
        """Whether the ratio is on the right side of the mark."""
        sign, number = self.mark.split()
        return self.ratio >= float(number) if sign == ">=" else self.ratio <= float(number)


@dataclass(frozen=True)
class Timing(Generic[Ours, Theirs]):
    """Median times of two sides, their last answers, and the first side's peak memory."""

    ours_seconds: float
    theirs_seconds: float
    ours: Ours
    theirs: Theirs
    peak_mib: float


def time_in_turn(ours: Callable[[], Ours], theirs: Callable[[], Theirs], rounds: int) -> Timing[Ours, Theirs]:
    """Run both sides alternately, ``rounds`` times each."""
    times: tuple[list[float], list[float]] = ([], [])
    peaks: list[float] = []
    for _ in range(rounds):
        with peak_memory() as peak:
            start = time.perf_counter()
            our_answer = ours()
            times[0].append(time.perf_counter() - start)
        peaks.extend(peak)
        start = time.perf_counter()
        their_answer = theirs()
        times[1].append(time.perf_counter() - start)
    return Timing(median(times[0]), median(times[1]), our_answer, their_answer, max(peaks, default=0.0))


@contextmanager
def peak_memory() -> Iterator[list[float]]:
    """Collect into the yielded list, on leaving, the MiB that the process grew by at most; 0 off Linux."""
    done = threading.Event()
    before = _resident_mib()
    seen = [before]

    def watch() -> None:
        while not done.wait(SAMPLE_SECONDS):
            seen.append(_resident_mib())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    peak: list[float] = []
    try:
        yield peak
    finally:
        done.set()
        watcher.join()
        peak.append(max(seen) - before)


def _resident_mib() -> float:
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * PAGE_KIB / 1024 if statm.exists() else 0.0
