import torch
from torch import nn

from sfora_ray.parameters import split_by_decay


class ResponseNorm(nn.Module):
    """A normalisation that torch does not know, as some networks bring one."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.bias = nn.Parameter(torch.zeros(3))


def test_biases_and_norms_of_every_kind_are_not_decayed() -> None:
    layers = {"conv": nn.Conv2d(3, 3, 1), "batch": nn.BatchNorm2d(3), "layer": nn.LayerNorm(3), "own": ResponseNorm()}
    network = nn.ModuleDict({**layers, "linear": nn.Linear(3, 2)})
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    decay, no_decay = split_by_decay("net", network, 0.1, warms_up=False)
    assert (decay.name, decay.decays, no_decay.name, no_decay.decays) == ("net.decay", True, "net.no_decay", False)
    assert {names[id(parameter)] for parameter in decay.parameters} == {"conv.weight", "linear.weight"}
    assert len(no_decay.parameters) == len(names) - 2


def test_what_is_skipped_or_shared_is_in_no_group_or_one() -> None:
    shared = nn.Linear(3, 3)
    network = nn.ModuleDict({"first": shared, "again": shared, "other": nn.Linear(3, 3, bias=False)})
    groups = split_by_decay("net", network, 0.1, warms_up=True, skip=[shared.bias])
    assert [len(group.parameters) for group in groups] == [2]
