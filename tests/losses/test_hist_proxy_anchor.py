from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError

from sfora_ray.losses.hist_proxy_anchor import HistProxyAnchor, HistProxyAnchorOptions
from sfora_ray.randomness import torch_generator
from tests.losses.reference import assert_close, load_case, tensor


def built(options: HistProxyAnchorOptions | None = None, seed: int = 0) -> HistProxyAnchor:
    return (options or HistProxyAnchorOptions()).build(dim=6, num_classes=5, generator=torch_generator(seed))


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    rows = torch.randn(7, 6, generator=torch_generator(1)) * 3
    return rows.requires_grad_(), torch.tensor([0, 4, 0, 2, 2, 4, 0])


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_loss_and_gradient_are_the_weighted_sum(weight: float) -> None:
    objective = built(HistProxyAnchorOptions(weight=weight))
    rows, labels = batch()
    loss = objective(rows, labels)
    (gradient,) = torch.autograd.grad(loss, rows)
    first, second = objective.hist(rows, labels), objective.proxy_anchor(rows, labels)
    (of_first,) = torch.autograd.grad(first, rows)
    (of_second,) = torch.autograd.grad(second, rows)
    assert loss.item() == pytest.approx(first.item() + weight * second.item(), rel=1e-6)
    torch.testing.assert_close(gradient, of_first + weight * of_second)


def test_the_proxy_part_equals_its_reference() -> None:
    case = load_case("proxy_anchor", "c0")
    proxies, rows, labels = tensor(case, "in/proxies"), tensor(case, "in/X"), tensor(case, "in/labels")
    options = HistProxyAnchorOptions.model_validate(
        {"proxy_anchor": {"alpha": float(case["hp/alpha"]), "delta": float(case["hp/margin"])}, "weight": 3.0}
    )
    objective = options.build(dim=proxies.shape[1], num_classes=len(proxies), generator=torch_generator(2)).double()
    with torch.no_grad():
        objective.proxy_anchor.proxies.copy_(proxies)
    difference = objective(rows, labels) - objective.hist(rows, labels)
    assert_close(difference, 3.0 * case["pml/loss"])


def test_each_part_keeps_its_options_and_rates() -> None:
    options = HistProxyAnchorOptions.model_validate(
        {"hist": {"tau": 16, "lr_distributions": 0.03}, "proxy_anchor": {"alpha": 8, "proxy_lr": 0.2}}
    )
    objective = built(options)
    assert objective.hist.options.tau == 16
    assert objective.proxy_anchor.options.alpha == 8
    rates = {group.name: group.lr for group in objective.parameter_groups(1e-4)}
    assert rates == pytest.approx(
        {
            "hist.distributions": 0.03,
            "hist.network.decay": 1e-3,
            "hist.network.no_decay": 1e-3,
            "proxy_anchor.proxies": 0.2,
        }
    )
    grouped = [id(parameter) for group in objective.parameter_groups(1e-4) for parameter in group.parameters]
    assert sorted(grouped) == sorted(id(parameter) for parameter in objective.parameters())


def test_diagnostics_are_those_of_both_parts() -> None:
    objective = built()
    assert objective.diagnostics() == {"dead_variance_share": objective.hist.dead_variance_share}


def test_an_unknown_key_of_a_part_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"proxy_anchor\.tua"):
        HistProxyAnchorOptions.model_validate({"proxy_anchor": {"tua": 1}})
