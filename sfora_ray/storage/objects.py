"""Objects below one address, each whole or absent; what fails for a moment is tried again.

The file system's own retries are off: its time-outs and the pauses here bound how long a call may take. Credentials
that rotate are read anew after each refusal, since a file system keeps those it was made with.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow.fs
from pyarrow.lib import ArrowException, ArrowInvalid

from sfora_ray.errors import InputError, StorageError
from sfora_ray.storage.address import bucket_and_prefix, fault_of, scheme_of, settings_of, without_credentials

_log = logging.getLogger(__name__)

PAUSES_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Pauses before each further try."""

_CONNECT_SECONDS = 5.0
_SILENCE_SECONDS = 20.0
_REFUSED = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|INVALID_SIGNATURE|UNRECOGNIZED_CLIENT"
    r"|INVALID_CLIENT_TOKEN_ID|EXPIRED|HTTP status 40[13]|ExpiredToken|InvalidToken|Unauthenticated|Unauthorized"
)
_NO_BUCKET = re.compile(r"NO_SUCH_BUCKET|NoSuchBucket|ContainerNotFound")
_SECRET_VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_SHORTEST_SECRET = 6

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class ObjectFacts:
    """What a listing tells of an object: bytes, and when the store took it, by the clock of the store."""

    size: int
    time_ns: int


class ObjectStore:
    """The objects below an address; their names are relative to it, with ``/`` between parts.

    Args:
        address: where, such as ``s3://bucket/prefix``.
        pauses_seconds: pauses before each further try.
        silence_seconds: how long a server may say nothing.

    Raises:
        InputError: the address is wrong.
    """

    def __init__(
        self,
        address: str,
        *,
        pauses_seconds: Sequence[float] = PAUSES_SECONDS,
        silence_seconds: float = _SILENCE_SECONDS,
    ) -> None:
        fault = fault_of(address)
        if fault:
            raise InputError(f"output: {fault}, got '{without_credentials(address)}'. Correct the address.")
        self.address = address
        self._root = bucket_and_prefix(address)
        self._pauses = tuple(pauses_seconds)
        self._silence = silence_seconds
        self._system: pyarrow.fs.FileSystem | None = None
        self._in_hurry = threading.Event()

    def hurry(self) -> None:
        """From now on try everything once, also what is being tried again just now: this process is about to end."""
        self._in_hurry.set()

    def listing(self) -> dict[str, ObjectFacts]:
        """Return every object below the address, by name; folders are no objects.

        Raises:
            StorageError: the store does not answer or refuses.
        """
        selector = pyarrow.fs.FileSelector(self._root, allow_not_found=True, recursive=True)
        found = self._patiently(self.address, lambda system: system.get_file_info(selector))
        return {
            info.path[len(self._root) + 1 :]: ObjectFacts(info.size, info.mtime_ns or 0)
            for info in found
            if info.type == pyarrow.fs.FileType.File
        }

    def get(self, name: str) -> bytes | None:
        """Return an object's content, or None if there is none of this name.

        Raises:
            StorageError: the store does not answer or refuses.
        """

        def read(system: pyarrow.fs.FileSystem) -> bytes | None:
            try:
                with system.open_input_stream(self._path(name)) as stream:
                    content: bytes = stream.read()
            except FileNotFoundError:
                return None
            _refuse_torn(content, system.get_file_info(self._path(name)))
            return content

        return self._patiently(self._place(name), read)

    def put(self, name: str, content: bytes) -> None:
        """Write an object; readers see the old one or the whole new one.

        Raises:
            StorageError: the store does not answer or refuses.
        """

        def write(system: pyarrow.fs.FileSystem) -> None:
            # In one piece: a stream that is closed by an error between two pieces would leave a part as the whole.
            with system.open_output_stream(self._path(name)) as stream:
                stream.write(content)

        self._patiently(self._place(name), write)

    def delete(self, name: str) -> None:
        """Delete an object; one that is not there is no fault.

        Raises:
            StorageError: the store does not answer or refuses.
        """

        def remove(system: pyarrow.fs.FileSystem) -> None:
            try:
                system.delete_file(self._path(name))
            except FileNotFoundError:
                return

        self._patiently(self._place(name), remove)

    def check(self) -> None:
        """Prove that objects can be written, read and deleted here: one of one byte, up and down.

        Raises:
            InputError: there is no such bucket.
            StorageError: the store does not answer or refuses.
        """
        name = f".probe-{os.getpid()}-{time.time_ns()}"
        self.put(name, b"1")
        if self.get(name) != b"1":
            raise StorageError(f"{self.address}: did not give back the byte that was just written. See to the store.")
        self.delete(name)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _place(self, name: str) -> str:
        return f"{self.address.partition('?')[0].rstrip('/')}/{name}"

    def _patiently(self, place: str, action: Callable[[pyarrow.fs.FileSystem], _Value]) -> _Value:
        """Do it, and after an error again after each pause; the file system is made anew after a refusal."""
        error: Exception | None = None
        for pause in (0.0, *self._pauses):
            if error is not None:
                _log.info("%s: %s; trying again in %g s", place, _in_words(error), pause)
                if self._in_hurry.wait(pause):
                    break
            try:
                self._system = self._system or _file_system(self.address, self._silence)
                return action(self._system)
            except ArrowInvalid as wrong:
                raise InputError(f"{place}: {_in_words(wrong)}. Correct the address or remove the object.") from None
            except (OSError, ArrowException) as failed:
                error = failed
                self._give_up_if_hopeless(place, failed)
        assert error is not None
        raise StorageError(
            f"{place}: the store failed in every try, got '{_in_words(error)}'. {_way_out(error)}"
        ) from None

    def _give_up_if_hopeless(self, place: str, error: Exception) -> None:
        if _NO_BUCKET.search(str(error)):
            raise InputError(f"{place}: there is no such bucket. Create it, or correct the address.") from None
        if _REFUSED.search(str(error)):
            self._system = None


def _refuse_torn(content: bytes, now: pyarrow.fs.FileInfo) -> None:
    """Have an object read again that may have been replaced under our eyes.

    A file system asks for the size first and for so many bytes then: of a new, longer object only the beginning.

    Raises:
        OSError: the object now has another size.
    """
    if now.size is not None and now.size != len(content):
        raise OSError(f"was replaced while it was read ({len(content)} bytes, now {now.size})")


def _file_system(address: str, silence_seconds: float) -> pyarrow.fs.FileSystem:
    if scheme_of(address) == "s3":
        return _s3(address, silence_seconds)
    system, _ = pyarrow.fs.FileSystem.from_uri(address)
    return system


def _s3(address: str, silence_seconds: float) -> pyarrow.fs.FileSystem:
    settings = settings_of(address)
    variables = os.environ
    endpoint = (
        settings.get("endpoint_override") or variables.get("AWS_ENDPOINT_URL_S3") or variables.get("AWS_ENDPOINT_URL")
    )
    region = settings.get("region") or variables.get("AWS_REGION") or variables.get("AWS_DEFAULT_REGION")
    options: dict[str, Any] = {
        "connect_timeout": _CONNECT_SECONDS,
        "request_timeout": silence_seconds,
        # Sends what is small as one object in one request, and opens nothing before there is something to send.
        "allow_delayed_open": True,
        "retry_strategy": pyarrow.fs.AwsStandardS3RetryStrategy(max_attempts=1),
    }
    if endpoint:
        scheme, _, host = endpoint.rpartition("://")
        options |= {"endpoint_override": host.rstrip("/"), "scheme": scheme or settings.get("scheme", "https")}
        region = region or "us-east-1"
    return pyarrow.fs.S3FileSystem(
        region=region or pyarrow.fs.resolve_s3_region(bucket_and_prefix(address).partition("/")[0]), **options
    )


def _way_out(error: Exception) -> str:
    if _REFUSED.search(str(error)):
        return "See to the credentials and to the rights that they give on the bucket."
    return "Bring the store back or correct its address (AWS_ENDPOINT_URL), then run the command again."


def _in_words(error: Exception) -> str:
    """Return an error in one line, without the credentials of this process."""
    text = " ".join(str(error).split())
    for name in _SECRET_VARIABLES:
        secret = os.environ.get(name, "")
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return text
