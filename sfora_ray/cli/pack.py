"""``sfora-ray pack``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console

from sfora_ray.cli.live_table import live_table, members_table
from sfora_ray.cli.plan_table import print_plan
from sfora_ray.cli.summary_table import print_summary
from sfora_ray.cli.terminal import make_console
from sfora_ray.config.load import load_config
from sfora_ray.errors import InputError, SforaError
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.pack.status import member_views, pack_view
from sfora_ray.pack.summary import Summary
from sfora_ray.training.preflight import dry_plan
from sfora_ray.workflows.extend import extend_pack
from sfora_ray.workflows.homes import read_run
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.run_pack import resume_pack, run_pack
from sfora_ray.workflows.train_pack import Say


@click.group()
def command() -> None:
    """Train a pack of members, resume or extend it, or look how it is doing."""


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
@click.argument("run")
@click.option("--local", is_flag=True, help="Use processes of this machine, not Ray. The bits are the same.")
def resume(run: str, local: bool) -> None:
    """Continue the pack in RUN, a folder or an address; members that finished are not trained again."""
    console = make_console()
    with live_table(console) as watch:
        folder, summary = resume_pack(run, Launcher(local=local), watch=watch, say=say_to(console))
    end_of_pack(console, summary, folder)


@command.command()
@click.argument("run")
@click.option("--seeds", default="", metavar="5,6,7", help="Seeds of new members.")
@click.option("--epochs", type=int, help="Train every member up to this epoch.")
@click.option("--local", is_flag=True, help="Use processes of this machine, not Ray. The bits are the same.")
def extend(run: str, seeds: str, epochs: int | None, local: bool) -> None:
    """Add members or epochs to the pack in RUN; nothing that is finished is trained again."""
    console = make_console()
    more = _whole_numbers(seeds)
    with live_table(console) as watch:
        folder, summary = extend_pack(
            run, Launcher(local=local), seeds=more, epochs=epochs, watch=watch, say=say_to(console)
        )
    end_of_pack(console, summary, folder)


@command.command()
@click.argument("run")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def status(run: str, as_json: bool) -> None:
    """Tell from RUN alone, a folder or an address, how the pack and its members are doing."""
    folder = read_run(run)
    view, members = pack_view(folder), member_views(folder, {})
    if as_json:
        click.echo(json.dumps({"pack": asdict(view), "members": [asdict(member) for member in members]}, indent=2))
        return
    console = make_console()
    console.print(f"{folder.path.name}: {view}", markup=False, highlight=False, soft_wrap=True)
    console.print(members_table(members))
    if folder.summary_path.is_file():
        print_summary(console, folder.summary(), folder)


def _whole_numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise InputError(f"--seeds: must be whole numbers with commas between them, got '{text}'.") from None


def end_of_pack(console: Console, summary: Summary, folder: RunFolder) -> None:
    """Print what came out; a pack with failed members ends with exit code 1, for a script must not miss it."""
    print_summary(console, summary, folder)
    missing = summary.pack.num_planned - summary.pack.num_members
    if missing:
        raise SforaError(f"{missing} member(s) did not finish. Train them again: sfora-ray pack resume {folder.path}")


def say_to(console: Console) -> Say:
    """Return what prints a line of progress, text as it is."""
    return lambda text: console.print(text, style="dim", markup=False, soft_wrap=True, highlight=False)
