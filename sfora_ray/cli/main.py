"""``sfora-ray``: the entry point, and how every command ends."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from sfora_ray import __version__
from sfora_ray.cli.signals import INTERRUPTED, answer_signals
from sfora_ray.errors import SforaError

# Each command's module is loaded when it is called, so that `--help` does not wait for torch.
_COMMANDS = {
    "pack": "Train a pack of members, resume or extend it, or look how it is doing.",
    "sweep": "Search a configuration, resume a search, or see whether what it found is really better.",
    "compare": "Compare packs: which differences are real, over seeds, over queries and by pack size.",
    "ablation": "Train two packs with the same seeds and compare them at each pack size.",
    "doctor": "Look at all that a pack stands on, before a night is lost.",
    "fold": "Refit folds on an existing run folder.",
    "report": "Rebuild the report of a run folder.",
    "data": "Look at a data set before a night is lost.",
    "mlflow": "Tell MLflow again what a run folder says.",
    "bench": "Measure this machine against the marks of the project.",
    "config": "What a configuration may hold.",
    "methods": "List every method a configuration can name, its paper, and what it was checked against.",
}


class _Lazy(click.Group):
    """A group whose commands are loaded one by one."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"sfora_ray.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.command(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sfora-ray")
def root() -> None:
    """Packs of deep metric learning models on Ray: trained, gathered, folded, scored, logged, reported."""


def main() -> None:
    """Run a command; see :func:`ending` for how it ends."""
    with ending():
        root(standalone_mode=False)


@contextmanager
def ending() -> Iterator[None]:
    """End the process as every command does: exit 0 done, 1 failed, 2 the input is wrong, 130 interrupted."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.captureWarnings(True)
    answer_signals()
    try:
        yield
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except SforaError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.exceptions.Abort):
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
