"""YAML as people write it: ``1e-4`` is a number, a repeated key is an error."""

from __future__ import annotations

import re
from typing import Any

import yaml

from sfora_ray.errors import ConfigError


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
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{place}: not readable as YAML: {' '.join(str(error).split())}. Correct it.") from error


def dump_yaml(value: Any) -> str:
    """Return a value of plain lists, mappings and scalars as YAML text."""
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110)
    return text
