"""An objective of tuples that a miner chooses."""

from __future__ import annotations

from torch import Tensor

from sfora_ray.losses import Objective, TupleObjective
from sfora_ray.mining import Miner
from sfora_ray.parameters import ParameterGroup


class Mined(Objective):
    """The loss of the tuples that are worth a gradient, in place of that of all."""

    def __init__(self, objective: TupleObjective, miner: Miner) -> None:
        super().__init__()
        self.of_tuples = objective
        self.miner = miner

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Return the scalar loss of the chosen tuples of ``(B, D)`` raw embeddings with ``(B,)`` labels."""
        return self.of_tuples.compare(embeddings, embeddings, self.miner(embeddings, labels))

    def parameter_groups(self, base_lr: float) -> tuple[ParameterGroup, ...]:
        """Return the objective's own groups."""
        return self.of_tuples.parameter_groups(base_lr)

    def diagnostics(self) -> dict[str, float]:
        """Return the objective's own."""
        return self.of_tuples.diagnostics()
