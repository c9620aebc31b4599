"""One member on the cluster: a Ray Train run of its own, called from a task of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import ray
import ray.train
import ray.train.torch
import torch
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer

from sfora_ray.cluster.capacity import need_per_worker
from sfora_ray.config.member import MemberSpec
from sfora_ray.errors import SforaError
from sfora_ray.options import Options
from sfora_ray.training.boundary import failed, member_result
from sfora_ray.training.environment import worker_environment
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.output import output_to
from sfora_ray.training.worker import Worker


class MemberTask(Options):
    """What travels to the cluster to train one member."""

    spec: MemberSpec
    folder: Path
    """The member's folder; every node must see it."""
    working_dir: Path
    """Relative paths in the config start here."""
    backend: str
    attempt: str
    """Makes the Train run's name new, for Ray would resume an old one of the same name without a word."""


@ray.remote(num_cpus=0, max_retries=0)
def run_member(task: dict[str, Any]) -> dict[str, Any]:
    """Train one member to its result. A failure is a result too; only cancellation ends it otherwise."""
    order = MemberTask.model_validate(task)
    resources = order.spec.config.resources
    trainer = TorchTrainer(
        _train_worker,  # type: ignore[arg-type]
        train_loop_config=task,
        torch_config=TorchConfig(backend=order.backend),
        scaling_config=ScalingConfig(
            num_workers=resources.workers_per_member,
            use_gpu=resources.gpus_per_worker > 0,
            resources_per_worker=need_per_worker(resources),
        ),
        run_config=RunConfig(
            name=f"{order.spec.id}-{order.attempt}",
            storage_path=str(order.folder / "ray"),
            failure_config=FailureConfig(  # type: ignore[call-arg]  # Ray types the older one
                max_failures=resources.max_failures,
                # One failure of a controller is one minute in which no worker could be started.
                controller_failure_limit=max(1, round(resources.schedule_timeout_seconds / 60)),
            ),
            worker_runtime_env={"env_vars": worker_environment(resources)},
        ),
    )
    try:
        outcome = trainer.fit()
    except ray.train.TrainingFailedError as error:
        # A member that knew why it failed has said so; the workers beside it only saw it go.
        said = MemberFolder(order.folder).result()
        return (said or failed(order.spec, last_line(error))).model_dump(mode="json")
    # Ray types `fit` as the older Result, which does not carry what the first worker returned.
    result: dict[str, Any] = getattr(outcome, "return_value")  # noqa: B009
    return result


def _train_worker(task: dict[str, Any]) -> dict[str, Any]:
    """Run on each of a member's workers.

    What the input or the mathematics is to blame for becomes a failed result, for a repeat would fail again. All
    else, such as a dead GPU or a storage error, is raised: Train starts the member again from its checkpoint.
    """
    order = MemberTask.model_validate(task)
    if order.working_dir.is_dir():
        os.chdir(order.working_dir)
    context = ray.train.get_context()
    rank = context.get_world_rank()
    wants_gpu = order.spec.config.resources.gpus_per_worker > 0
    device = ray.train.torch.get_device() if wants_gpu and torch.cuda.is_available() else torch.device("cpu")
    log = order.folder / ("worker.log" if rank == 0 else f"worker-{rank}.log")
    with output_to(log):
        print(f"worker {rank} on {device}, scheduled accelerators {accelerators()}")  # noqa: T201 - into the log
        worker = Worker(rank, context.get_world_size(), device)
        result = member_result(order.spec, order.folder, worker, becomes_result=SforaError)
    return result.model_copy(update={"accelerators": accelerators()}).model_dump(mode="json")


def accelerators() -> tuple[str, ...]:
    """Return the ids of the GPUs that Ray gave this worker."""
    return tuple(ray.get_runtime_context().get_accelerator_ids().get("GPU", []))


def last_line(error: Exception) -> str:
    """Return the kind of an error and the last line of its text, where Ray puts the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else 'no reason given'}"
