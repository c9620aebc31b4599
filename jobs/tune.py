"""Run a sweep as a Ray job; the same job submitted again goes on with the trials that have not ended.

ray job submit --working-dir . -- python jobs/tune.py CONFIG pack.data.root=/data/images pack.output=/runs

`pack.output` must be a folder that every node sees and that outlives the job.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sfora_ray.cli.main import ending
from sfora_ray.cli.pack import say_to
from sfora_ray.cli.sweep_table import live_sweep, print_ranking
from sfora_ray.cli.terminal import make_console
from sfora_ray.config.load_sweep import load_sweep
from sfora_ray.errors import InputError
from sfora_ray.workflows.sweep import run_or_resume_sweep


def main(arguments: list[str]) -> None:
    """Run the sweep that the first argument's config describes; the others are overrides."""
    if not arguments:
        raise InputError("tune.py: needs the path of a config, got nothing. Give CONFIG [PATH=VALUE]...")
    console = make_console()
    config = load_sweep(Path(arguments[0]), arguments[1:])
    with live_sweep(console) as watch:
        sweep, found = run_or_resume_sweep(config, watch=watch, say=say_to(console))
    print_ranking(console, found, sweep)


if __name__ == "__main__":
    with ending():
        main(sys.argv[1:])
