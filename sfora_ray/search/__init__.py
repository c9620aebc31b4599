"""Search: what a sweep tries next, as a pure function of what it has seen. The only room that knows Optuna.

A new searcher is one file with its options and one line in :data:`SEARCHERS`; a new distribution a class in
`distributions.py` and one line in :data:`DISTRIBUTIONS`.
"""

from sfora_ray.search.base import Searcher, SearcherOptions, Status, Told, Values
from sfora_ray.search.distributions import (
    Choice,
    Continuous,
    Distribution,
    Integer,
    LogUniform,
    OneMinusLogUniform,
    Uniform,
)
from sfora_ray.search.grid import GridOptions
from sfora_ray.search.identity import identity_of
from sfora_ray.search.random_search import RandomOptions
from sfora_ray.search.space import MISSING, Space, root_of, value_below
from sfora_ray.search.tpe import OptunaOptions

DISTRIBUTIONS: dict[str, type[Distribution]] = {
    "uniform": Uniform,
    "log_uniform": LogUniform,
    "one_minus_log_uniform": OneMinusLogUniform,
    "integer": Integer,
    "choice": Choice,
}

SEARCHERS: dict[str, type[SearcherOptions]] = {"random": RandomOptions, "grid": GridOptions, "optuna": OptunaOptions}

__all__ = [
    "DISTRIBUTIONS",
    "MISSING",
    "SEARCHERS",
    "Choice",
    "Continuous",
    "Distribution",
    "GridOptions",
    "Integer",
    "LogUniform",
    "OneMinusLogUniform",
    "OptunaOptions",
    "RandomOptions",
    "Searcher",
    "SearcherOptions",
    "Space",
    "Status",
    "Told",
    "Uniform",
    "Values",
    "identity_of",
    "root_of",
    "value_below",
]
