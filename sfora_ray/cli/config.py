"""``sfora-ray config``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from sfora_ray.config.load import load_config
from sfora_ray.config.pack import PackConfig
from sfora_ray.config.reference import config_reference
from sfora_ray.config.yaml_text import dump_yaml


@click.group()
def command() -> None:
    """What a configuration may hold."""


@command.command()
def schema() -> None:
    """Print the JSON schema, for editors."""
    click.echo(json.dumps(PackConfig.model_json_schema(), indent=2))


@command.command()
def reference() -> None:
    """Print every key with its type, default and meaning, as Markdown."""
    click.echo(config_reference())


@command.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("overrides", nargs=-1, metavar="[PATH=VALUE]...")
def show(config: Path, overrides: tuple[str, ...]) -> None:
    """Print CONFIG with every default filled in."""
    pack = load_config(config, overrides)
    click.echo(f"# {pack.run_name}")
    click.echo(dump_yaml(pack.plain()), nl=False)
