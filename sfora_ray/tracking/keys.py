"""The one map from a name as people write it to a key that MLflow accepts.

MLflow takes letters, digits, ``_ - . : /`` and blanks, at most 250 characters, and no key that is another
path when read as one; the field's own names (``R@1``) are refused. Legal keys are left as they are.
"""

from __future__ import annotations

import re

from sfora_ray.errors import TrackerError

MAX_KEY_LENGTH = 250
DESCRIPTION_TAG = "mlflow.note.content"
"""Tag whose text MLflow shows as the description of a run."""
_NONFINITE = "nonfinite."
_FIELD_NAMES = {"map@r": "map_at_r", "map": "mean_average_precision", "rp": "r_precision", "nmi": "nmi"}


def metric_key(name: str) -> str:
    """Return the key under which a metric is stored: ``R@1`` and ``Recall@1`` give ``recall_at_1``.

    Raises:
        TrackerError: nothing of the name is left, or it is too long.
    """
    key = _legal(_field_key(name.strip()))
    if not key or len(_NONFINITE + key) > MAX_KEY_LENGTH:
        raise TrackerError(
            f"metric key: a name must keep 1 to {MAX_KEY_LENGTH - len(_NONFINITE)} characters, "
            f"got {name!r:.300}. Rename the metric."
        )
    return key


def nonfinite_key(key: str) -> str:
    """Return the key of the metric that counts the NaN and infinite values of ``key``."""
    return _NONFINITE + key


def _field_key(name: str) -> str:
    recall = re.fullmatch(r"r(?:ecall)?@(\d+)", name, re.IGNORECASE)
    return f"recall_at_{recall[1]}" if recall else _FIELD_NAMES.get(name.lower(), name)


def _legal(name: str) -> str:
    plain = re.sub(r"[^\w.\-: /]", "_", name.replace("@", "_at_").replace("%", "_percent"))
    parts = (part for part in plain.split("/") if part not in ("", ".", ".."))
    return "/".join(parts)
