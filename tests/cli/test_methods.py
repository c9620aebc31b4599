import re
import sys

import pytest

from sfora_ray.config.methods import methods
from sfora_ray.losses import LOSSES
from sfora_ray.mining import MINERS
from tests.cli.conftest import Call


def shown(out: str) -> list[tuple[str, str]]:
    """Return key and name of each method in a table on the terminal."""
    rows = [[cell.strip() for cell in line.split("│")[1:3]] for line in out.splitlines() if line.startswith("│")]
    return [(key, name) for key, name in rows if key or name]


def test_a_pipe_has_every_name_in_one_piece_and_wide_lines(call: Call) -> None:
    ended = call("methods")
    assert ended.code == 0
    assert shown(ended.out) == [(one.key, one.name) for one in methods()]
    assert {len(line) for line in ended.out.splitlines()} == {160}


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_terminal_keeps_its_width_and_never_breaks_a_name(
    width: int, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    out = re.sub(r"\x1b\[[\d;]*m", "", call("methods").out)
    assert shown(out) == [(one.key, one.name) for one in methods()]
    assert max(map(len, out.splitlines())) == width


@pytest.mark.parametrize(("key", "table"), [("loss", LOSSES), ("miner", MINERS)])
def test_an_argument_narrows_it_to_one_table(key: str, table: dict[str, type], call: Call) -> None:
    assert shown(call("methods", key).out) == [(key, name) for name in table]
    as_markdown = call("methods", key, "--markdown").out
    assert re.findall(r"^#### `(\w+)`", as_markdown, re.MULTILINE) == [key]
    assert re.findall(r"^\| `(\w+)` \|", as_markdown, re.MULTILINE) == list(table)
    assert as_markdown.strip() in call("methods", "--markdown").out


@pytest.mark.parametrize("options", [(), ("--markdown",)])
def test_an_unknown_table_is_refused_with_those_there_are(options: tuple[str, ...], call: Call) -> None:
    ended = call("methods", "los", *options)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "error: methods: no such table, got 'los'. Did you mean 'loss'? Choose from loss, miner, recipe, sampler, "
        "data, folds.\n"
    )
