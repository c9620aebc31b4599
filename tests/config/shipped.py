"""Where the shipped packs are, and what stands above their first key."""

import itertools
from pathlib import Path

CONFIGS = Path(__file__).parents[2] / "configs"
PACKS = (path for path in CONFIGS.rglob("*.yaml") if path.parent.name != "search")
SHIPPED = sorted(path.relative_to(CONFIGS).as_posix() for path in PACKS)
PUBLISHED = [name for name in SHIPPED if name.split("/")[0] in ("cub", "cars", "sop", "inaturalist")]
"""Those of the four benchmarks, whose settings somebody has published."""


def opening(name: str) -> str:
    """Return the opening comment of a shipped file as one line."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), (CONFIGS / name).read_text().splitlines())
    return " ".join(line.removeprefix("#").strip() for line in lines)
