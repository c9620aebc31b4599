"""How a module tells the optimiser which of its parameters learn at which rate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters that share a learning rate and whether weight decay reaches them.

    Attributes:
        name: unique within a member, e.g. ``backbone.decay``; shown by ``--dry-run`` and logged.
        parameters: the parameters, in a fixed order.
        lr: learning rate before the schedule.
        decays: whether the optimiser's weight decay applies.
        warms_up: whether the group already learns during warm-up, while the backbone rests.
    """

    name: str
    parameters: tuple[nn.Parameter, ...]
    lr: float
    decays: bool
    warms_up: bool


def split_by_decay(
    name: str, module: nn.Module, lr: float, *, warms_up: bool, skip: Iterable[nn.Parameter] = ()
) -> tuple[ParameterGroup, ...]:
    """Split a module's parameters into ``<name>.decay`` and ``<name>.no_decay``.

    Biases and the weights of normalisation layers are not decayed, as in the published protocol
    (Proxy Anchor and HIST programs as re-implemented for HERD); everything else is. Empty groups are left out.
    """
    skipped = {id(parameter) for parameter in skip}
    decayed: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    for child in module.modules():
        for key, parameter in child.named_parameters(recurse=False):
            if id(parameter) in skipped:
                continue
            skipped.add(id(parameter))
            (plain if key == "bias" or "Norm" in type(child).__name__ else decayed).append(parameter)
    groups = (
        ParameterGroup(f"{name}.decay", tuple(decayed), lr, True, warms_up),
        ParameterGroup(f"{name}.no_decay", tuple(plain), lr, False, warms_up),
    )
    return tuple(group for group in groups if group.parameters)
