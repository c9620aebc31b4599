"""The plan of a sweep that ``--dry-run`` prints."""

from __future__ import annotations

import json

from rich.console import Console

from sfora_ray.config.sweep import SweepConfig


def print_sweep_plan(console: Console, config: SweepConfig) -> None:
    """Print the space, how it is searched, and what a configuration is judged by."""
    selection, members = config.selection, config.member_names()
    on = "the test classes (selection: test)" if config.is_on_test else "held-out training classes"
    lines = {
        "sweep": str(config.folder),
        "trials": f"{config.num_trials or 'as many as the space has'}, each of {len(members)} member(s): "
        f"{len(config.seeds)} seed(s) x {selection.folds} fold(s)",
        "searcher": json.dumps(config.searcher.model_dump(mode="json")),
        "scheduler": json.dumps(config.scheduler.model_dump(mode="json")),
        "judged by": f"{selection.metric} on {on}, mean over members, {selection.epoch} epoch",
        **{path: _distribution(one.model_dump(mode="json")) for path, one in config.space.items()},
    }
    width = max(len(name) for name in lines) + 2
    for name, text in lines.items():
        console.print(f"{name:<{width}}{text}", highlight=False, soft_wrap=True, markup=False)


def _distribution(values: dict[str, object]) -> str:
    kind = values.pop("distribution")
    facts = ", ".join(f"{key} {json.dumps(value)}" for key, value in values.items() if value not in ({}, None))
    return f"{kind}: {facts}"
