"""YAML as people write it: ``1e-4`` is a number, a repeated key is an error.

Only plain values are made, never objects. A few lines of aliases of aliases can stand for more values than any
memory holds, so what they stand for is counted before it is made.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from sfora_ray.errors import ConfigError

_MOST_VALUES = 100_000


class _Loader(yaml.SafeLoader):
    """Safe loader that knows every spelling of a float and refuses a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        repeated = sorted({str(key) for key in keys if keys.count(key) > 1})
        if repeated:
            line = node.start_mark.line + 1
            raise yaml.constructor.ConstructorError(
                None, None, f"key '{repeated[0]}' stands twice in the block at line {line}", node.start_mark
            )
        return super().construct_mapping(node, deep)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        value = super().construct_scalar(node)
        if "\0" in value:
            line = node.start_mark.line + 1
            raise yaml.constructor.ConstructorError(None, None, f"a NUL character in line {line}", node.start_mark)
        return value


# YAML 1.1 reads 1e-4 and 4e2 as text, since it wants a dot before the exponent.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d[\d_]*)(\.\d*)?[eE][-+]?\d+$"),
    list("-+0123456789"),
)


def parse_yaml(text: str, *, place: str) -> Any:
    """Parse YAML text.

    Raises:
        ConfigError: it is not YAML; the message has ``place`` and the line.
    """
    try:
        loader = _Loader(text)
        try:
            return _constructed(loader)
        finally:
            loader.dispose()
    except RecursionError as error:
        raise ConfigError(f"{place}: not readable as YAML: nested too deeply. Correct it.") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{place}: not readable as YAML: {' '.join(str(error).split())}. Correct it.") from error


def _constructed(loader: _Loader) -> Any:
    node = loader.get_single_node()
    if node is None:
        return None
    _num_values(node, {})
    return loader.construct_document(node)


def _num_values(node: yaml.Node, known: dict[int, int]) -> int:
    """Return how many values a node stands for, each alias counted as what it repeats."""
    if id(node) not in known:
        known[id(node)] = _MOST_VALUES  # until its own count is known: whoever meets it again is inside it
        parts = [part for item in node.value for part in (item if isinstance(item, tuple) else (item,))]
        inner = parts if isinstance(node, yaml.CollectionNode) else []
        known[id(node)] = 1 + sum(_num_values(part, known) for part in inner)
    if known[id(node)] >= _MOST_VALUES:
        raise ValueError(f"its aliases stand for more than {_MOST_VALUES} values")
    return known[id(node)]


def dump_yaml(value: Any) -> str:
    """Return a value of plain lists, mappings and scalars as YAML text."""
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110)
    return text
