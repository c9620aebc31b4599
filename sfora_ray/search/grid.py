"""Grid search: the product of all entries in their declared order, the last entry changing fastest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from pydantic import PositiveInt

from sfora_ray.errors import ConfigError
from sfora_ray.search.base import SearcherOptions, Told
from sfora_ray.search.space import MOST_COUNTED, Space, count_up_to_most


@dataclass(frozen=True)
class GridSearcher:
    """Walks the grid."""

    space: Space
    points: int

    def propose(self, number: int, told: Sequence[Told]) -> dict[str, Any] | None:
        """Return the grid's configuration ``number``; none past its end."""
        del told
        grid = self.space.configurations(lambda one: one.points(self.points))
        return next(islice(grid, number, None), None)


class GridOptions(SearcherOptions):
    """Every combination."""

    name: Literal["grid"] = "grid"
    points: PositiveInt = 5
    """How many values of each continuous (or logarithmic) path: equally spaced quantiles, both ends among them."""

    def build(self, space: Space) -> GridSearcher:
        """Make the searcher."""
        self.size(space)
        return GridSearcher(space, self.points)

    def size(self, space: Space) -> int:
        """Return how many different configurations the grid has.

        Raises:
            ConfigError: they are more than anybody trains.
        """
        count = count_up_to_most(space.configurations(lambda one: one.points(self.points)))
        if count is None:
            raise ConfigError(
                f"searcher: the grid has more than {MOST_COUNTED} configurations. Give fewer points or choices, "
                "or search with 'random'."
            )
        return count
