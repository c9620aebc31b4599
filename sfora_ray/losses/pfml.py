"""PFML: every row and every proxy is a charge, and the batch moves towards the least potential energy.

Bhatnagar, Ahuja: Potential Field Based Deep Metric Learning, CVPR 2025 (arXiv 2405.18560), eq. 1 to 6. On the unit
sphere, at distance d, points of one class attract and points of different classes repel each other:

* attraction ``-1 / max(d, delta) ** alpha``: flat within ``delta``, so that classes need not shrink to a point;
* repulsion ``1 / min(d, delta) ** alpha``: flat beyond ``delta``, so that what is apart is left alone.

The energy of the batch adds up the field of all points at each point: rows of the batch, and ``proxies_per_class``
learnt proxies of every class. It is a sum over ordered pairs of different points. A point's own field at itself is a
constant, and left out.

No program of the authors is known, and the equations were confirmed only from descriptions of the paper that agree
with each other, not from its pages. So what is implemented is exactly the above. Two readings:

* ``paper``: the sum itself. Flat repulsion makes it large (``1 / delta ** alpha`` for each pair that is apart), so
  the value says little and the gradient everything.
* ``port``: the mean over the same pairs, as in the program behind the HERD report, where training collapsed.
  Pairs of proxies outnumber all others, so rows get a very small gradient there.

Adam does not see the difference while gradients are far above its epsilon and no other term, such as distillation, is
added. With many classes those of ``port`` are not (at the 11,318 classes of SOP its proxies hardly move): lower
``optimizer.epsilon`` there.

The gradient of repulsion grows without bound as two classes touch, up to the distance of 1e-4 where it is cut; so
distances are computed in float64. :meth:`Pfml.diagnostics` tells of a collapse: mean cosines near 1, and a share of
rows that lie among another class.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from sfora_ray.card import Card
from sfora_ray.losses.base import LossOptions, Objective
from sfora_ray.losses.batch_cosines import same_class
from sfora_ray.losses.weights import weight_group
from sfora_ray.parameters import ParameterGroup

LEAST_DISTANCE = 1e-4
PAIRS_AT_ONCE = 1 << 24


class Pfml(Objective):
    """The potential field objective; its proxies are its own parameters."""

    proxy_labels: Tensor
    last_batch: Tensor

    def __init__(self, options: PfmlOptions, *, dim: int, num_classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.options = options
        draws = torch.randn(num_classes * options.proxies_per_class, dim, generator=generator)
        self.proxies = nn.Parameter(F.normalize(draws))
        labels = torch.arange(num_classes).repeat_interleave(options.proxies_per_class)
        self.register_buffer("proxy_labels", labels, persistent=False)
        self.register_buffer("last_batch", torch.zeros(2))

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the scalar loss in the proxies' precision, computed in float64 whatever autocast says."""
        with torch.autocast(embeddings.device.type, enabled=False):
            # In float32 ``2 - 2 cos`` is rounding noise below a distance of 1e-3, also of rows normalised in it.
            rows = F.normalize(embeddings.double())
            self._remember(rows.detach(), labels)
            points = torch.cat([rows, F.normalize(self.proxies.double())])  # (B + P, D)
            energy = self._energy(points, torch.cat([labels, self.proxy_labels])).to(self.proxies.dtype)
        if self.options.reading == "paper":
            return energy
        return energy / (len(points) * (len(points) - 1))

    def _energy(self, points: Tensor, labels: Tensor) -> Tensor:
        """Return the sum over ordered pairs; where they are many, some rows at a time and again on the way back."""
        num_rows = max(1, PAIRS_AT_ONCE // len(points))
        if num_rows >= len(points):
            return self._energy_of_rows(points, labels, 0, len(points))
        parts = [
            checkpoint(
                self._energy_of_rows,
                points,
                labels,
                first,
                min(first + num_rows, len(points)),
                use_reentrant=False,
                preserve_rng_state=False,
            )
            for first in range(0, len(points), num_rows)
        ]
        return torch.stack(parts).sum()

    def _energy_of_rows(self, points: Tensor, labels: Tensor, first: int, last: int) -> Tensor:
        """Return the energy of the points ``first..last-1`` in the field of all points."""
        delta, power = self.options.delta, -self.options.alpha / 2
        squares = (2 - 2 * points[first:last] @ points.T).clamp(min=LEAST_DISTANCE**2)  # (R, N)
        attraction = -squares.clamp(min=delta**2).pow(power)
        repulsion = squares.clamp(max=delta**2).pow(power)
        pairs = torch.where(labels[first:last, None] == labels, attraction, repulsion)
        positions = torch.arange(len(points), device=points.device)
        return pairs.masked_fill(positions[first:last, None] == positions, 0.0).sum()

    @torch.no_grad()
    def _remember(self, rows: Tensor, labels: Tensor) -> None:
        cosines = rows @ rows.T  # (B, B)
        strangers = ~same_class(labels)
        among = strangers & (2 - 2 * cosines < self.options.delta**2)
        mean_cosine = (cosines.sum() - cosines.trace()) / max(1, cosines.numel() - len(rows))
        self.last_batch.copy_(torch.stack([mean_cosine, among.any(dim=1).to(rows.dtype).mean()]))

    def diagnostics(self) -> dict[str, float]:
        """Return what tells of a collapse.

        ``row_mean_cosine`` is the mean cosine of different rows of the last batch and ``proxy_mean_cosine`` that of
        all proxies, both near 1 when all lie at one place; ``among_strangers_share`` is the share of that batch's
        rows that have a row of another class within ``delta``.
        """
        mean_cosine, strangers = self.last_batch.tolist()
        number = len(self.proxies)
        total = F.normalize(self.proxies.detach().double()).sum(dim=0)
        between = (float(total @ total) - number) / max(1, number * (number - 1))
        return {
            "row_mean_cosine": mean_cosine,
            "proxy_mean_cosine": between,
            "among_strangers_share": strangers,
        }

    def parameter_groups(self, base_lr: float) -> tuple[ParameterGroup, ...]:
        """Return the proxies at their own absolute rate; ``base_lr`` does not reach them."""
        del base_lr
        options = self.options
        return weight_group("pfml.proxies", self.proxies, options.proxy_lr, decays=options.proxy_decay)


class PfmlOptions(LossOptions):
    """Options of PFML."""

    card: ClassVar[Card] = Card(
        title="PFML",
        paper="Bhatnagar, Ahuja, CVPR 2025, eq. 1 to 6",
        checked="slow loops over all pairs; reference values of the port behind the HERD report, gradients included",
        differences="no program of the authors is known; the constant self terms are left out",
    )
    needs_positives: ClassVar[bool] = False

    name: Literal["pfml"] = "pfml"
    reading: Literal["paper", "port"] = "paper"
    """The sum over all ordered pairs (paper), or their mean (the program behind the HERD report)."""
    delta: float = Field(default=0.2, gt=0, le=2)
    """Distance within which attraction is flat and beyond which repulsion is."""
    alpha: float = Field(default=4.0, gt=0, le=6)
    """How fast the field decays with distance."""
    proxies_per_class: int = Field(default=15, ge=1, le=1000)
    """Learnt proxies of each class (2 for SOP)."""
    proxy_lr: float = Field(default=5e-2, ge=0)
    """Absolute learning rate of the proxies: 100 times the backbone's 5e-4."""
    proxy_decay: bool = False
    """Whether weight decay reaches the proxies."""

    def build(self, *, dim: int, num_classes: int, generator: torch.Generator) -> Pfml:
        """Make the objective for ``dim``-wide embeddings of ``num_classes`` training classes."""
        return Pfml(self, dim=dim, num_classes=num_classes, generator=generator)
