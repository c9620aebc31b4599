"""Checks run so that none can hang or raise."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, Queue

from sfora_ray.errors import SforaError
from sfora_ray.workflows.checks.finding import Check, Finding

_SECONDS_TO_END = 5.0

Ask = Callable[[Check], Sequence[Finding]]


@contextmanager
def inquiry() -> Iterator[Ask]:
    """Yield what runs a check: a failure is a red finding, and so is a check that takes longer than it may.

    All checks run in one thread, which lives as long as the block: the kernel ends the processes of a local Ray
    together with the thread that started them. A thread that hangs is left behind and another one takes its place.
    """
    inquirer = _Inquirer()
    try:
        yield inquirer.ask
    finally:
        inquirer.dismiss()


class _Inquirer:
    def __init__(self) -> None:
        self._hire()

    def _hire(self) -> None:
        self._questions: Queue[Check | None] = Queue()
        self._answers: Queue[Sequence[Finding]] = Queue()
        arguments = (self._questions, self._answers)
        self._thread = threading.Thread(target=_work, args=arguments, name="doctor", daemon=True)
        self._thread.start()

    def ask(self, check: Check) -> Sequence[Finding]:
        self._questions.put(check)
        try:
            return self._answers.get(timeout=check.seconds)
        except Empty:
            self._hire()
            found = f"no answer within {check.seconds:g} s while {check.doing}"
            return (Finding(check.area, "red", found, "See whether a disk, the network or a server hangs"),)
        except KeyboardInterrupt:
            # The answer that may still come belongs to no later question.
            self._hire()
            raise

    def dismiss(self) -> None:
        self._questions.put(None)
        self._thread.join(_SECONDS_TO_END)


def _work(questions: Queue[Check | None], answers: Queue[Sequence[Finding]]) -> None:
    while (check := questions.get()) is not None:
        answers.put(_asked(check))


def _asked(check: Check) -> Sequence[Finding]:
    try:
        return check.ask()
    except SforaError as error:
        return (refused(check.area, error),)
    except Exception as error:  # a check that breaks must not hide what the others find
        said = " ".join(str(error).split())
        return (Finding(check.area, "red", f"{type(error).__name__} while {check.doing}: {said:.300}", "Look into it"),)


def refused(area: str, error: SforaError) -> Finding:
    """Return an error as a red line; the last sentence of its message is the advice."""
    found, _, advice = " ".join(str(error).split()).rpartition(". ")
    return Finding(area, "red", found or advice, advice.rstrip(".") if found else "")
