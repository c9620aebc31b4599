import logging
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from sfora_ray.cli.main import main
from sfora_ray.tracking.quiet import quieten_mlflow

quieten_mlflow()


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


Call = Callable[..., Ended]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """Call ``sfora-ray`` in this process."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["sfora-ray", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)
    logging.captureWarnings(False)
