"""Where members run: on Ray, or in processes of this machine."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sfora_ray.config.member import MemberSpec
from sfora_ray.config.pack import PackConfig
from sfora_ray.pack.launcher import Launched
from sfora_ray.pack.local import LocalMembers, places
from sfora_ray.pack.marker import marked
from sfora_ray.pack.run_folder import RunFolder
from sfora_ray.storage import is_address


class Launcher:
    """A place where members can run. Ray is loaded only if it is this one."""

    def __init__(self, *, local: bool) -> None:
        self._local = local

    @contextmanager
    def ready(self, variables: Mapping[str, str] | None = None) -> Iterator[None]:
        """Be connected for the length of the block; ``variables`` are the environment of what works on Ray then."""
        if self._local:
            yield
            return
        on_terminate = signal.getsignal(signal.SIGTERM)
        from sfora_ray.cluster.session import connected

        with connected(variables):
            if threading.current_thread() is threading.main_thread():
                # Ray puts a handler of its own here, which would end the process before members are stopped.
                signal.signal(signal.SIGTERM, on_terminate)
            yield

    def refuse_impossible(self, config: PackConfig) -> None:
        """Prove that one member can run here; raises ``ResourceError`` with what is missing."""
        if self._local:
            places(config.resources)
            return
        from sfora_ray.cluster.capacity import refuse_impossible

        refuse_impossible(config.resources)

    def refuse_unshared(self, config: PackConfig, folder: Path) -> None:
        """Prove that runs can be written where the config wants them, in ``folder`` or in its store, by every node.

        Raises:
            RunFolderError: the folder cannot be written here.
            StorageError: the store does not answer or refuses.
            ResourceError: a node of the cluster does not see the same place; the message names it.
        """
        if self._local:
            with marked(folder):
                return
        from sfora_ray.cluster.probe import storage_probe

        storage_probe(config.output if is_address(config.output) else folder)

    def launch(self, run: RunFolder, specs: Sequence[MemberSpec]) -> Launched:
        """Take the members; the first poll starts them."""
        if self._local:
            return LocalMembers(run, specs)
        from sfora_ray.cluster.launcher import ClusterMembers

        return ClusterMembers(run, specs)
