"""``sfora-ray sweep``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from sfora_ray.cli.live_table import live_table
from sfora_ray.cli.pack import say_to
from sfora_ray.cli.plan_table import print_plan
from sfora_ray.cli.sweep_plan import print_sweep_plan
from sfora_ray.cli.sweep_table import headline, live_sweep, print_confirmed, print_ranking, trials_table
from sfora_ray.cli.terminal import make_console
from sfora_ray.config.load_sweep import load_sweep
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.sweep.ranking import ranking
from sfora_ray.sweep.status import sweep_view
from sfora_ray.training.preflight import dry_plan
from sfora_ray.workflows.confirm import confirm_sweep
from sfora_ray.workflows.launchers import Launcher
from sfora_ray.workflows.sweep import resume_sweep, run_sweep, trained_pack


@click.group()
def command() -> None:
    """Search a pack's configuration, resume a search, or see whether what it found is really better."""


@command.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("overrides", nargs=-1, metavar="[PATH=VALUE]...")
@click.option("--dry-run", is_flag=True, help="Print the plan and stop.")
def run(config: Path, overrides: tuple[str, ...], dry_run: bool) -> None:
    """Run the sweep that CONFIG describes. Any value can be set with PATH=VALUE, as in trials=12, pack.output=/runs."""
    sweep = load_sweep(config, overrides)
    console = make_console()
    if dry_run:
        print_sweep_plan(console, sweep)
        print_plan(console, trained_pack(sweep), dry_plan(trained_pack(sweep)))
        return
    with live_sweep(console) as watch:
        folder, found = run_sweep(sweep, watch=watch, say=say_to(console))
    print_ranking(console, found, folder)


@command.command()
@click.argument("sweep", type=click.Path(path_type=Path))
@click.option("--trials", type=int, help="How many trials it is to have from now on.")
def resume(sweep: Path, trials: int | None) -> None:
    """Continue the sweep in the folder SWEEP; trials that have ended are not run again."""
    console = make_console()
    with live_sweep(console) as watch:
        folder, found = resume_sweep(sweep, num_trials=trials, watch=watch, say=say_to(console))
    print_ranking(console, found, folder)


@command.command()
@click.argument("sweep", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def status(sweep: Path, as_json: bool) -> None:
    """Tell from the folder SWEEP alone how the sweep and its trials are doing."""
    folder = SweepFolder.open(sweep)
    view, found = sweep_view(folder), ranking(folder)
    if as_json:
        click.echo(json.dumps({"sweep": asdict(view), "ranking": found.model_dump(mode="json")}, indent=2))
        return
    console = make_console()
    console.print(f"{folder.path.name}: {view}", markup=False, highlight=False, soft_wrap=True)
    if view.state != "finished":
        console.print(headline(view), markup=False, highlight=False, soft_wrap=True)
        console.print(trials_table([trial for trial in view.trials if trial not in view.ended], view.metric))
    print_ranking(console, found, folder)


@command.command()
@click.argument("sweep", type=click.Path(path_type=Path))
@click.option("--top", default=3, show_default=True, help="How many of the best configurations are confirmed.")
@click.option("--seeds", default=5, show_default=True, help="Members of each pack, all with fresh seeds.")
@click.option("--local", is_flag=True, help="Use processes of this machine, not Ray. The bits are the same.")
def confirm(sweep: Path, top: int, seeds: int, local: bool) -> None:
    """Train the best configurations of SWEEP and the default as packs with fresh, paired seeds, and compare them.

    Called again after an interruption it trains only what is missing.
    """
    console = make_console()
    with live_table(console) as watch:
        _, result = confirm_sweep(
            sweep, Launcher(local=local), top=top, num_seeds=seeds, watch=watch, say=say_to(console)
        )
    print_confirmed(console, result)
