"""The plan that ``--dry-run`` prints."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from sfora_ray.config.pack import PackConfig
from sfora_ray.pack.summary import recipe_in_words
from sfora_ray.samplers import HierarchicalOptions, MiningWeightedOptions, SamplerOptions
from sfora_ray.training.preflight import MemberPlan


def print_plan(console: Console, config: PackConfig, plan: MemberPlan) -> None:
    """Print members, resources, steps, schedule and parameter groups."""
    counts, training, resources = plan.counts, config.training, config.resources
    lines = {
        "run folder": config.run_address or str(config.output_folder / config.run_name),
        "members": f"{len(config.seeds)}, seeds {', '.join(str(seed) for seed in config.seeds)}",
        "each member": f"{resources.workers_per_member} worker(s) of {resources.cpus_per_worker} CPU and "
        f"{resources.gpus_per_worker:g} GPU",
        "data": f"{config.data.name}: train {counts.train_classes} classes, {counts.train_images} images; "
        f"test {counts.test_classes} classes, {counts.test_images} images",
        "selection": f"{config.selection.split}"
        + (f" ({plan.validation_classes} training classes held out)" if plan.validation_classes else ""),
        "model": f"{config.model.backbone.name}, {config.model.pooling}, {config.model.dim} dimensions"
        + (", LayerNorm" if config.model.layer_norm else "")
        + (", frozen BatchNorm" if config.model.frozen_batch_norm else ""),
        "weights": plan.weights,
        "objective": config.loss.name + (f", miner {config.miner.name}" if config.miner else ""),
        "recipe": recipe_in_words(config.recipe),
        "sampler": _sampler(config.sampler),
        "steps": f"{plan.steps_per_epoch} per epoch of batch {config.sampler.batch_size}, {training.epochs} epochs, "
        f"{plan.steps_per_epoch * training.epochs} in all",
        "schedule": _schedule(config, plan),
        "evaluation": f"every {training.evaluate_every} epochs and after the last",
    }
    for name, text in lines.items():
        console.print(f"{name:<12}{text}", highlight=False, soft_wrap=True, markup=False)
    console.print(_groups(config, plan))
    for note in plan.notes:
        console.print(f"note: {note}", style="yellow", highlight=False, soft_wrap=True, markup=False)


def _sampler(sampler: SamplerOptions) -> str:
    each = sampler.images_per_class
    parts = [sampler.name] if each is None else [sampler.name, f"{sampler.batch_size // each} classes of {each}"]
    if isinstance(sampler, HierarchicalOptions):
        parts.append(f"of {sampler.super_classes} coarse classes")
    if isinstance(sampler, MiningWeightedOptions):
        parts.append(f"miner {sampler.miner.name}")
    return ", ".join(parts)


def _schedule(config: PackConfig, plan: MemberPlan) -> str:
    warm = config.schedule.warmup_epochs
    shown = ", ".join(f"x{factor:g} from epoch {epoch}" for epoch, factor in plan.rates[:8])
    more = ", ..." if len(plan.rates) > 8 else ""
    return f"{config.schedule.name}: {shown}{more}; warm-up {warm} epoch(s)"


def _groups(config: PackConfig, plan: MemberPlan) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("parameter group", "tensors", "parameters", "lr", "weight decay", "in warm-up"):
        table.add_column(column, justify="left" if column == "parameter group" else "right", no_wrap=True)
    for group in plan.groups:
        table.add_row(
            group.name,
            str(group.num_tensors),
            f"{group.num_parameters:,}",
            f"{group.lr:g}",
            f"{group.weight_decay:g}",
            "learns" if group.warms_up or not config.schedule.warmup_epochs else "rests",
        )
    return table
