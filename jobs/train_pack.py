"""Train a pack as a Ray job; the same job submitted again trains only what is not finished.

ray job submit --working-dir . -- python jobs/train_pack.py CONFIG data.root=/data/images output=/runs

`output` must be a folder that every node sees and that outlives the job.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sfora_ray.cli.live_table import live_table
from sfora_ray.cli.main import ending
from sfora_ray.cli.pack import end_of_pack, say_to
from sfora_ray.cli.terminal import make_console
from sfora_ray.config.load import load_config
from sfora_ray.errors import InputError
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.run_pack import run_or_resume


def main(arguments: list[str]) -> None:
    """Run the pack that the first argument's config describes; the others are overrides."""
    if not arguments:
        raise InputError("train_pack.py: needs the path of a config, got nothing. Give CONFIG [PATH=VALUE]...")
    console = make_console()
    config = load_config(Path(arguments[0]), arguments[1:])
    with live_table(console) as watch:
        run, summary = run_or_resume(config, Launcher(local=False), watch=watch, say=say_to(console))
    end_of_pack(console, summary, run)


if __name__ == "__main__":
    with ending():
        main(sys.argv[1:])
