"""Which collective backend a member's workers can use, from the hardware they really see."""

from __future__ import annotations

import ray

from sfora_ray.cluster.capacity import waited_in_vain
from sfora_ray.config.pack import ResourceOptions
from sfora_ray.errors import SforaError


@ray.remote(num_cpus=0, max_retries=2)
def _sees_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


def collective_backend(resources: ResourceOptions) -> str:
    """Return ``nccl`` where several workers of a member see a GPU each, else ``gloo``.

    Ray's own choice goes by the scheduled resource, which may exist without hardware. NCCL refuses two ranks on one
    device, so shares of a GPU get gloo as well.

    Raises:
        SforaError: no GPU came free within the schedule time-out.
    """
    if resources.workers_per_member == 1 or resources.gpus_per_worker < 1:
        return "gloo"
    seen = _sees_cuda.options(num_gpus=resources.gpus_per_worker).remote()
    try:
        return "nccl" if ray.get(seen, timeout=resources.schedule_timeout_seconds) else "gloo"
    except ray.exceptions.GetTimeoutError as error:
        ray.cancel(seen)
        raise SforaError(
            f"members: {waited_in_vain(resources)}. Free or add nodes, then run `sfora-ray pack resume`."
        ) from error
