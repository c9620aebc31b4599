"""``sfora-ray pack``."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from sfora_ray.cli.live_table import live_table, members_table
from sfora_ray.cli.plan_table import print_plan
from sfora_ray.cli.summary_table import print_summary
from sfora_ray.cli.terminal import make_console
from sfora_ray.config.load import load_config
from sfora_ray.errors import SforaError
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.status import member_views
from sfora_ray.pack.summary import Summary
from sfora_ray.training.preflight import dry_plan
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.run_pack import Say, resume_pack, run_pack


@click.group()
def command() -> None:
    """Train a pack of members, resume it, or look how it is doing."""


@command.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("overrides", nargs=-1, metavar="[PATH=VALUE]...")
@click.option("--local", is_flag=True, help="Use processes of this machine, not Ray. The bits are the same.")
@click.option("--dry-run", is_flag=True, help="Print the plan and stop.")
def run(config: Path, overrides: tuple[str, ...], local: bool, dry_run: bool) -> None:
    """Train the pack that CONFIG describes. Any value can be set with PATH=VALUE, as in optimizer.lr=1e-4."""
    pack = load_config(config, overrides)
    console = make_console()
    if dry_run:
        print_plan(console, pack, dry_plan(pack))
        return
    with live_table(console) as watch:
        folder, summary = run_pack(pack, Launcher(local=local), watch=watch, say=say_to(console))
    end_of_pack(console, summary, folder)


@command.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--local", is_flag=True, help="Use processes of this machine, not Ray. The bits are the same.")
def resume(run: Path, local: bool) -> None:
    """Continue the pack in the run folder RUN; members that finished are not trained again."""
    console = make_console()
    with live_table(console) as watch:
        folder, summary = resume_pack(run, Launcher(local=local), watch=watch, say=say_to(console))
    end_of_pack(console, summary, folder)


@command.command()
@click.argument("run", type=click.Path(path_type=Path))
def status(run: Path) -> None:
    """Tell from the run folder RUN alone how its members are doing."""
    folder = RunFolder.open(run)
    console = make_console()
    console.print(members_table(member_views(folder, {})))
    if folder.summary_path.is_file():
        print_summary(console, folder.summary(), folder)


def end_of_pack(console: Console, summary: Summary, folder: RunFolder) -> None:
    """Print what came out; a pack with failed members ends with exit code 1, for a script must not miss it."""
    print_summary(console, summary, folder)
    missing = summary.pack.num_planned - summary.pack.num_members
    if missing:
        raise SforaError(f"{missing} member(s) failed. Train them again: sfora-ray pack resume {folder.path}")


def say_to(console: Console) -> Say:
    """Return what prints a line of progress, text as it is."""
    return lambda text: console.print(text, style="dim", markup=False, soft_wrap=True, highlight=False)
