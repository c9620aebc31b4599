"""Options of the MLflow tracker. MLflow itself is loaded by ``build`` and not before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, ValidationError, field_validator

from sfora_ray.errors import TrackerError
from sfora_ray.tracking.address import conceal, fault_of
from sfora_ray.tracking.base import Tracker, TrackingOptions
from sfora_ray.tracking.quiet import quieten_mlflow


class MlflowOptions(TrackingOptions):
    """MLflow: a server, or a database that this process writes to itself."""

    name: Literal["mlflow"] = "mlflow"
    uri: str = "sqlite:///mlflow.db"
    """A server (``https://host:5000``) or a database. Many writers need a server; SQLite is for one machine.
    Passwords belong into ``MLFLOW_TRACKING_USERNAME`` and ``MLFLOW_TRACKING_PASSWORD``."""
    experiment: str = Field(default="sfora", min_length=1, max_length=500)
    """The MLflow experiment that holds the runs; made if there is none."""

    @field_validator("uri")
    @classmethod
    def _is_an_address(cls, uri: str) -> str:
        shown = conceal(uri, uri)
        if shown != uri:
            # Not a ValueError: pydantic's report would show the password.
            raise TrackerError(
                "tracking.uri: must not hold a password, for the run folder keeps the configuration, "
                f"got '{shown}'. Set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, for PostgreSQL "
                "PGPASSWORD."
            )
        fault = fault_of(uri)
        if fault:
            raise ValueError(fault)
        return uri

    @classmethod
    def given(cls, values: Mapping[str, str]) -> MlflowOptions:
        """Return the options of a command line.

        Raises:
            TrackerError: one of them is wrong.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            place, message = ".".join(map(str, problem["loc"])), problem["msg"].removeprefix("Value error, ")
            raise TrackerError(f"tracking.{place}: {message}, got {problem['input']!r}. Correct it.") from None

    def build(self) -> Tracker:
        """Load MLflow and make the tracker; nothing is sent yet."""
        quieten_mlflow()
        from sfora_ray.tracking.mlflow_client import MlflowTracker

        return MlflowTracker(uri=self.uri, experiment=self.experiment)
