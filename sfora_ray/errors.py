"""What can go wrong, by whose hand, and the exit code each ends with.

Every message has one form: ``<place>: <what is wrong>, got <value>. <what to do>``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SforaError(Exception):
    """Something failed while the work went on. The command ends with exit code 1."""

    exit_code = 1


class InputError(SforaError):
    """What the user gave is wrong: a config, a folder, an image, a file. Exit code 2, nothing was written."""

    exit_code = 2


class ConfigError(InputError):
    """A configuration does not say what a pack needs; the message lists every problem found."""


class DataError(InputError):
    """A data set is missing, unreadable, or breaks a rule such as class-disjoint splits."""


class WeightsError(InputError):
    """A weight file is missing, damaged, or belongs to another network."""


class RunFolderError(InputError):
    """A run folder is not what the command needs: absent, of another config, or incomplete."""


class BusyError(InputError):
    """Another process is writing the run folder."""


class ResourceError(InputError):
    """A member asks for more than the machine or the cluster has."""


class TrackerError(InputError):
    """The experiment tracker cannot be reached or refuses what it was asked."""


class NonFiniteError(SforaError):
    """A loss or an embedding became NaN or infinite; retrying would only repeat it."""


class StorageError(SforaError):
    """A file could not be written or read though nothing is wrong with the input; a later try may go well."""


class StoppedError(SforaError):
    """A member was told to stop; what it had done is saved."""


class ReplacedError(StoppedError):
    """Another attempt at the member has taken its folder; this one writes nothing more."""


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the closest of ``choices``, or an empty string."""
    close = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.6)
    return f" Did you mean '{close[0]}'?" if close else ""
