"""One member on the cluster: a Ray Train run of its own, called from a task of its own.

Ray Train restarts a member's workers within the run, ``resources.max_failures`` times, and without limit after an
announced preemption. What ends the run itself (the task, its controller) is the launcher's to mend. Train is told to
keep its few records in a scratch folder: our checkpoints lie in the member's folder, and Ray hears of none.
"""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import ray
import ray.train
import ray.train.torch
import torch
from ray import ObjectRef
from ray.exceptions import RayError
from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
from ray.train.torch import TorchConfig, TorchTrainer
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from sfora_ray.cluster.capacity import need_per_worker
from sfora_ray.cluster.causes import End, end_of
from sfora_ray.cluster.witness import Witness
from sfora_ray.config.member import MemberResult, MemberSpec
from sfora_ray.options import Options
from sfora_ray.storage import storage_environment
from sfora_ray.training.boundary import member_result
from sfora_ray.training.environment import worker_environment
from sfora_ray.training.member_folder import MemberFolder
from sfora_ray.training.output import output_to
from sfora_ray.training.worker import Worker
from sfora_ray.training.working_copy import member_folder

NO_GPU = {"env_vars": {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1"}}
"""Hides every GPU from a task that asks for none. An empty CUDA_VISIBLE_DEVICES would do so too, but what the task
starts would inherit it, whatever Ray gives that."""


class MemberTask(Options):
    """What travels to the cluster to train one member."""

    spec: MemberSpec
    folder: Path
    """The member's folder as the driver sees it."""
    place: str
    """Where the member's folder is at home: a path that every node sees, or an address in an object store."""
    working_dir: Path
    """Relative paths in the config start here."""
    scratch: Path
    """A folder of the node for Train's own records; nothing in it is missed. Its name is the run's: Ray would resume
    an old run of the same name without a word."""
    backend: str


class Landing(Options):
    """How a member's task ended: with a result, or without one."""

    result: MemberResult | None = None
    end: End | None = None


class _Trainer(TorchTrainer):
    """A trainer without Train's detached cleaner of placement groups, which never ends where no State API answers.

    See :mod:`sfora_ray.cluster.leftovers` for what does its work.
    """

    def _create_default_callbacks(self) -> list[Any]:
        callbacks: list[Any] = super()._create_default_callbacks()  # type: ignore[misc]  # Ray types the older one
        return [callback for callback in callbacks if type(callback).__name__ != "PlacementGroupCleanerCallback"]


@ray.remote(num_cpus=0, max_retries=0)
def run_member(task: dict[str, Any]) -> dict[str, Any]:
    """Train one member and return its landing; only cancellation or death of the process end it otherwise."""
    order = MemberTask.model_validate(task)
    order.scratch.mkdir(parents=True, exist_ok=True)
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        # Ray types `fit` as the older Result, which does not carry what the first worker returned.
        landing = Landing(result=getattr(_trainer(order).fit(), "return_value"))  # noqa: B009
    except (TrainingFailedError, RayError) as error:
        landing = Landing(end=end_of(error))
    finally:
        # Train leaves a handler here that keeps its controller alive as long as this process, which Ray uses again.
        signal.signal(signal.SIGINT, on_interrupt)
        shutil.rmtree(order.scratch, ignore_errors=True)
    return landing.model_dump(mode="json")


def send(task: Any, order: MemberTask) -> ObjectRef[dict[str, Any]]:
    """Give a member to ``task``, which is :func:`run_member`."""
    # The Train controller lives on its caller's node: the driver's, which is not one that comes and goes.
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
    variables = {**NO_GPU["env_vars"], **storage_environment(order.place)}
    sent = task.options(scheduling_strategy=here, runtime_env={"env_vars": variables})
    ref: ObjectRef[dict[str, Any]] = sent.remote(order.model_dump(mode="json"))
    return ref


def _trainer(order: MemberTask) -> _Trainer:
    resources = order.spec.config.resources
    return _Trainer(
        _train_worker,  # type: ignore[arg-type]
        train_loop_config=order.model_dump(mode="json"),
        torch_config=TorchConfig(backend=order.backend),
        scaling_config=ScalingConfig(
            num_workers=resources.workers_per_member,
            use_gpu=resources.gpus_per_worker > 0,
            resources_per_worker=need_per_worker(resources),
        ),
        run_config=RunConfig(
            name=order.scratch.name,
            storage_path=str(order.scratch),
            failure_config=FailureConfig(  # type: ignore[call-arg]  # Ray types the older one
                max_failures=resources.max_failures,
                # One failure of a controller is one minute in which no worker could be started.
                controller_failure_limit=max(1, round(resources.schedule_timeout_seconds / 60)),
            ),
            worker_runtime_env={"env_vars": {**worker_environment(resources), **storage_environment(order.place)}},
            callbacks=[Witness(order.folder)],  # type: ignore[list-item]
        ),
    )


def _train_worker(task: dict[str, Any]) -> dict[str, Any]:
    """Run on each of a member's workers; what is raised makes Train start the member again from its checkpoint."""
    order = MemberTask.model_validate(task)
    if order.working_dir.is_dir():
        os.chdir(order.working_dir)
    context = ray.train.get_context()
    rank = context.get_world_rank()
    with member_folder(order.place, order.spec, rank=rank) as folder:
        said = folder.result()
        if said is not None and said.status == "failed":
            # The first worker knew why and said so; the others saw it go and raised, so that Train tries once more.
            return said.model_dump(mode="json")
        result = _train_in(folder, order, Worker(rank, context.get_world_size(), _device(order), node_is_leaving))
    return result.model_copy(update={"accelerators": accelerators()}).model_dump(mode="json")


def _train_in(folder: MemberFolder, order: MemberTask, worker: Worker) -> MemberResult:
    log = folder.path / ("worker.log" if worker.is_first else f"worker-{worker.rank}.log")
    with output_to(log):
        print(f"worker {worker.rank} on {worker.device}, scheduled accelerators {accelerators()}")  # noqa: T201 - a log
        return member_result(order.spec, folder.path, worker, folder.home)


def _device(order: MemberTask) -> torch.device:
    wants_gpu = order.spec.config.resources.gpus_per_worker > 0
    return ray.train.torch.get_device() if wants_gpu and torch.cuda.is_available() else torch.device("cpu")


def node_is_leaving() -> bool:
    """Return whether a node of this member is about to be taken away; every worker of it must ask alike."""
    return ray.train.get_preemption_info() is not None


def accelerators() -> tuple[str, ...]:
    """Return the ids of the GPUs that Ray gave this worker."""
    return tuple(ray.get_runtime_context().get_accelerator_ids().get("GPU", []))
