"""Where runs are shown: one table of trackers; none of them loads MLflow before it is built."""

from sfora_ray.tracking.base import MetricPoint, OpenRun, RunStatus, Tracker, TrackingOptions
from sfora_ray.tracking.keys import DESCRIPTION_TAG, metric_key
from sfora_ray.tracking.mlflow import MlflowOptions
from sfora_ray.tracking.none import NoTrackingOptions
from sfora_ray.tracking.quiet import patience
from sfora_ray.tracking.secrets import without_secrets

TRACKERS: dict[str, type[TrackingOptions]] = {"mlflow": MlflowOptions, "none": NoTrackingOptions}

__all__ = [
    "DESCRIPTION_TAG",
    "TRACKERS",
    "MetricPoint",
    "MlflowOptions",
    "NoTrackingOptions",
    "OpenRun",
    "RunStatus",
    "Tracker",
    "TrackingOptions",
    "metric_key",
    "patience",
    "without_secrets",
]
