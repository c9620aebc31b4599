"""Where trials run: on Ray."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from sfora_ray.config.sweep import SweepConfig
from sfora_ray.sweep.folder import SweepFolder
from sfora_ray.training.environment import worker_environment
from sfora_ray.workflows.launchers import Launcher


class Trials(Protocol):
    """A place where trials can run."""

    def ready(self, config: SweepConfig) -> AbstractContextManager[None]:
        """Be connected for the length of the block."""
        ...

    def refuse_impossible(self, config: SweepConfig, folder: Path) -> None:
        """Prove that a trial can run here and that ``folder`` can be written; raises ``InputError`` if not."""
        ...

    def at_once(self, config: SweepConfig) -> int:
        """Return how many trials run at once."""
        ...

    def run(self, sweep: SweepFolder, watch: Callable[[], None]) -> None:
        """Run every trial that has not ended, calling ``watch`` now and then."""
        ...


class TrialsOnRay:
    """Ray Tune. Ray is loaded only when it is used."""

    def __init__(self) -> None:
        self._launcher = Launcher(local=False)

    def ready(self, config: SweepConfig) -> AbstractContextManager[None]:
        """Be connected for the length of the block."""
        return self._launcher.ready(worker_environment(config.pack.resources))

    def refuse_impossible(self, config: SweepConfig, folder: Path) -> None:
        """Prove that a trial fits, can be ended when it is stopped, and that every node sees ``folder``.

        Raises:
            ResourceError: a trial needs more than there is, or a node does not see the folder.
            RunFolderError: the folder cannot be written here.
        """
        from sfora_ray.cluster.tuning import refuse_nesting_without_state_api

        refuse_nesting_without_state_api(config)
        self._launcher.refuse_impossible(config.pack)
        self._launcher.refuse_unshared(config.pack, folder)

    def at_once(self, config: SweepConfig) -> int:
        """Return how many trials run at once."""
        from sfora_ray.cluster.tuning import trials_that_fit

        return trials_that_fit(config)

    def run(self, sweep: SweepFolder, watch: Callable[[], None]) -> None:
        """Run every trial that has not ended, calling ``watch`` now and then."""
        from sfora_ray.cluster.tuning import run_trials

        run_trials(sweep, watch)
