"""Mixed precision: the network's arithmetic may be narrow, everything that is kept stays float32."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch

_NARROW = {"bf16": torch.bfloat16, "fp16": torch.float16}


def autocast_for(precision: str, device: torch.device) -> Callable[[], AbstractContextManager[object]]:
    """Return a maker of contexts in which the network computes at ``precision``."""
    if precision == "fp32":
        return nullcontext
    return lambda: torch.autocast(device.type, dtype=_NARROW[precision])


def gradient_scaler(precision: str, device: torch.device) -> torch.amp.GradScaler:
    """Return the loss scaler: at work for fp16, passing everything through otherwise."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")
