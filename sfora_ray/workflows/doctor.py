"""``doctor``: everything that a night's pack stands on, looked at before the night."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from functools import partial

from pydantic import ValidationError

from sfora_ray.config.pack import PackConfig
from sfora_ray.errors import ConfigError
from sfora_ray.tracking import MlflowOptions, TrackingOptions
from sfora_ray.workflows.checks import folders, material, packages, ray_cluster, tracker
from sfora_ray.workflows.checks.finding import Check, Finding
from sfora_ray.workflows.checks.inquiry import inquiry

Say = Callable[[str], None]

_SECONDS_TO_CONNECT = 120.0
_SECONDS_OF_NODES = 90.0
_SECONDS_OF_MLFLOW = 90.0
_SECONDS_OF_DATA = 600.0


def doctor(config: PackConfig | None, *, say: Say) -> Generator[Finding]:
    """Yield what is found, check by check; none of them hangs or raises.

    Args:
        config: what its pack needs is looked at too; None for the machine, Ray and MLFLOW_TRACKING_URI alone.
        say: told what the next finding waits for.
    """

    def found_by(checks: Sequence[Check]) -> Iterator[Finding]:
        for check in checks:
            say(check.doing)
            yield from ask(check)

    with inquiry() as ask:
        yield from found_by(_of_this_machine(config))
        session = ExitStack()
        try:
            connect = Check("Ray", "connecting to Ray", partial(_connected, session), _SECONDS_TO_CONNECT)
            reached = list(found_by([connect]))
            yield from reached
            if all(finding.level != "red" for finding in reached):
                yield from found_by(_of_the_cluster(config))
        finally:
            say("leaving Ray")
            ask(Check("Ray", "leaving Ray", partial(_left, session)))


def _of_this_machine(config: PackConfig | None) -> list[Check]:
    checks = [
        Check("packages", "reading the versions of packages", packages.versions),
        Check("CUDA", "asking torch for its CUDA", packages.cuda),
    ]
    if config is not None:
        cache_dir = config.cache_dir.expanduser()
        checks += [
            Check("output", f"writing to {config.output}", partial(folders.output_place, config.output)),
            Check("cache_dir", f"writing to {cache_dir}", partial(folders.cache_folder, cache_dir)),
            Check("data set", "loading the data set", partial(material.data_set, config), _SECONDS_OF_DATA),
            Check("weights", "reading the start weights", partial(material.weights, config)),
        ]
    return [
        *checks,
        Check("MLflow", "sending a byte through MLflow", partial(_mlflow, config), _SECONDS_OF_MLFLOW),
        Check("Ray token", "looking for Ray's token", ray_cluster.token),
    ]


def _mlflow(config: PackConfig | None) -> list[Finding]:
    options = config.tracking if config is not None else _mlflow_of_the_environment()
    if isinstance(options, MlflowOptions):
        return tracker.mlflow_files(options)
    reason = "tracking.name=none" if config is not None else "no config, and MLFLOW_TRACKING_URI is not set"
    return [Finding("MLflow", "green", f"not looked at: {reason}")]


def _mlflow_of_the_environment() -> TrackingOptions | None:
    uri = os.environ.get("MLFLOW_TRACKING_URI")
    try:
        return MlflowOptions(uri=uri) if uri else None
    except ValidationError as error:
        raise ConfigError(
            f"MLFLOW_TRACKING_URI: {error.errors()[0]['msg']}, got '{uri}'. Correct the address."
        ) from None


def _connected(session: ExitStack) -> list[Finding]:
    from sfora_ray.cluster.session import connected

    session.enter_context(connected())
    return ray_cluster.cluster()


def _left(session: ExitStack) -> list[Finding]:
    session.close()
    return []


def _of_the_cluster(config: PackConfig | None) -> list[Check]:
    checks = [
        Check("State API", "asking Ray's State API", ray_cluster.state_api),
        Check("nodes", "asking every node what it has", ray_cluster.nodes, _SECONDS_OF_NODES),
    ]
    if config is not None:
        shared = partial(ray_cluster.shared_output, config)
        checks += [
            Check("members", "counting how many members fit", partial(ray_cluster.members, config.resources)),
            Check("shared output", f"writing to {config.output} from every node", shared, _SECONDS_OF_NODES),
        ]
    return checks
