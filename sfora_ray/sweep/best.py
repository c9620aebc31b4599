"""The best configuration of a sweep as a ready pack, with what its value is worth written above it."""

from __future__ import annotations

from typing import Any

from sfora_ray.config.pack import PackConfig
from sfora_ray.config.sweep import SweepConfig
from sfora_ray.config.yaml_text import dump_yaml
from sfora_ray.files import write_json, write_text
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.sweep.ranking import RankedTrial, Ranking, ranking

_LONGEST_NAME = 80


def write_results(sweep: SweepFolder) -> Ranking:
    """Write ``ranking.json`` and ``best.yaml`` from the trials as they are; return the ranking."""
    found = ranking(sweep)
    write_json(sweep.ranking_path, found.model_dump(mode="json"))
    best = found.best()
    if best is None:
        sweep.best_path.unlink(missing_ok=True)
    else:
        write_text(sweep.best_path, best_yaml(sweep, found, best))
    return found


def candidate_pack(config: SweepConfig, values: dict[str, Any], label: str) -> PackConfig:
    """Return the pack with these values under a name of its own, ``<sweep>-<label>``."""
    name = f"{config.name[: _LONGEST_NAME - len(label) - 1]}-{label}"
    return config.candidate(values).model_copy(update={"name": name})


def best_yaml(sweep: SweepFolder, found: Ranking, best: RankedTrial) -> str:
    """Return the text of ``best.yaml``."""
    lines = "\n".join(f"# {line}" if line else "#" for line in _header(sweep, found, best))
    return f"{lines}\n{dump_yaml(candidate_pack(sweep.config(), best.values, best.name).plain())}"


def _header(sweep: SweepFolder, found: Ranking, best: RankedTrial) -> list[str]:
    ended = len(found.ended())
    lines = [
        f"The best configuration of the sweep {found.sweep}: trial {best.name}, the best of {ended} that have ended.",
        *(f"  {path} = {_short(value)}" for path, value in best.values.items()),
        f"{found.metric} {value_text(best)} {selected_on(found)}, {judged_text(found, best)}.",
        "The best of many draws looks better than it is. What it is worth with fresh seeds:",
        f"  sfora-ray sweep confirm {sweep.path}",
    ]
    if found.selection == "test":
        lines += ["selection: test. It was chosen on the test classes: no number of these classes is a fair one now."]
    if best.status == "stopped":
        lines += [f"No trial has finished; this one was stopped after {best.epochs} epochs."]
    return lines


def value_text(trial: RankedTrial) -> str:
    """Return a trial's value in words: the mean, and +- the standard deviation over how many members."""
    if trial.value is None:
        return "none"
    spread = "" if trial.std is None else f" +- {trial.std:.4f}"
    count = len(trial.members)
    return f"{trial.value:.4f}{spread} over {count} member{'' if count == 1 else 's'}"


def selected_on(found: Ranking) -> str:
    """Return in words what configurations were judged on."""
    if found.selection == "test":
        return "on the test classes (selection: test)"
    if found.folds > 1:
        return f"on held-out training classes, {found.folds} class-disjoint folds"
    return "on held-out training classes"


def judged_text(found: Ranking, trial: RankedTrial) -> str:
    """Return in words which epoch a trial was judged by."""
    which = "the best epoch of its mean" if found.judged_by == "best" else "its last epoch"
    return f"epoch {trial.judged_epoch} ({which})"


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
