"""``sfora-ray config``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from sfora_ray.config.load import load_config
from sfora_ray.config.pack import PackConfig
from sfora_ray.config.reference import config_reference
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.config.yaml_text import dump_yaml


@click.group()
def command() -> None:
    """What a configuration may hold."""


of_sweeps = click.option("--sweep", "of_sweep", is_flag=True, help="Of sweeps, not of packs.")


@command.command()
@of_sweeps
def schema(of_sweep: bool) -> None:
    """Print the JSON schema, for editors."""
    config = SweepConfig if of_sweep else PackConfig
    click.echo(json.dumps(config.model_json_schema(), indent=2))


@command.command()
@of_sweeps
def reference(of_sweep: bool) -> None:
    """Print every key with its type, default and meaning, as Markdown."""
    click.echo(config_reference(SweepConfig if of_sweep else PackConfig))


@command.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("overrides", nargs=-1, metavar="[PATH=VALUE]...")
def show(config: Path, overrides: tuple[str, ...]) -> None:
    """Print CONFIG with every default filled in."""
    pack = load_config(config, overrides)
    click.echo(f"# {pack.run_name}")
    click.echo(dump_yaml(pack.plain()), nl=False)
